// fold_scale: factors and addends per channel, constants both, behind a convolution or matrix product move into its
// weights.
//
//   conv(x, w, b) * s        conv(x, w * s, b * s)       s: one element, or [channels, 1, ...] at axis 1 of the result
//   conv(x, w, b) + a        conv(x, w, b + a)
//   matmul(x, w) * s         matmul(x, w * s)            s: one element, or [columns] at the last axis
//   (matmul(x, w) + b) * s   matmul(x, w * s) + b * s
//   gemm(x, w, b) * s        gemm(x, w * s, b * s), likewise + a while beta is 1
//
// Division counts as a factor, subtraction as an addend. Holds before: f32, constant weights that nothing else reads,
// nothing else reads the result. Weights are scaled in f64 and rounded once; what would leave the range of f32 on the
// way stays (optimize/weight_scaling.h). A sum behind a matmul stays: fusing it is the kernels' business.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/weight_scaling.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// A step behind a product: result = product * factor + addend, one of each per channel.
struct Step {
  std::vector<double> values;
  bool is_factor = false;
};

// What `node` does to the product `x` on its left (or right, where sides do not matter).
std::optional<Step> read_step(const Graph& graph, const Node& node, ValueId x, int64_t axis, int64_t channels) {
  const OpDef* op = &node.op();
  const bool commutes = op == &mul_def() || op == &add_def();
  if (!commutes && op != &div_def() && op != &sub_def()) return std::nullopt;
  const size_t slot = node.input(0) == x ? 1 : 0;
  if (slot == 0 && !commutes) return std::nullopt;
  const Tensor* tensor = constant_f32(graph, node.input(slot));
  const Shape& shape = graph.type(x).shape();
  if (!tensor || !shape.has_rank()) return std::nullopt;
  auto values = per_channel(*tensor, shape.rank(), front_axis(axis, shape.rank()), channels);
  if (!values) return std::nullopt;
  for (double& value : *values) {
    if (op == &div_def()) value = 1 / value;
    if (op == &sub_def()) value = -value;
  }
  return Step{std::move(*values), op == &mul_def() || op == &div_def()};
}

// A bias per channel with the step applied.
Tensor stepped_bias(const Tensor* bias, const Step& step) {
  const size_t channels = step.values.size();
  std::vector<float> result(channels);
  for (size_t c = 0; c < channels; ++c) {
    double value = 0;
    if (bias) value = static_cast<double>(bias->data<float>()[bias->num_elements() == 1 ? 0 : c]);
    value = step.is_factor ? value * step.values[c] : value + step.values[c];
    result[c] = static_cast<float>(value);
  }
  return Tensor::of<float>({static_cast<int64_t>(channels)}, result);
}

bool is_finite(const Tensor& tensor) {
  const auto elements = tensor.elements<float>();
  return std::all_of(elements.begin(), elements.end(), [](float x) { return std::isfinite(x); });
}

// A product with constant weights.
struct Product {
  NodeId node;
  int64_t weight_axis;  // of the channels in the weights
  int64_t result_axis;  // and in the result; counted from the end when negative
  int64_t channels;
  bool has_bias_slot;
};

std::optional<Product> product_of_weights(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const bool is_conv = &node.op() == &conv_def();
  const bool is_gemm = &node.op() == &gemm_def();
  if (!is_conv && !is_gemm && &node.op() != &matmul_def()) return std::nullopt;
  const Tensor* weights = constant_f32(graph, node.input(1));
  if (!weights || weights->rank() < 2 || num_reads(graph, node.input(1)) != 1) return std::nullopt;
  if (!is_conv && weights->rank() != 2) return std::nullopt;
  const bool first = is_conv || (is_gemm && node.attributes().flag("transB"));
  const int64_t axis = first ? 0 : weights->rank() - 1;
  Product product{id, axis, is_conv ? 1 : -1, weights->dims()[static_cast<size_t>(axis)], is_conv || is_gemm};
  if (product.channels < 1) return std::nullopt;
  if (!node.input(2).is_valid()) return product;
  // A bias must be one value, or one per channel: gemm takes matrices too.
  const Tensor* bias = constant_f32(graph, node.input(2));
  if (!bias || (bias->num_elements() != 1 && bias->num_elements() != product.channels)) return std::nullopt;
  if (bias->rank() == 2 && bias->dims()[1] != bias->num_elements()) return std::nullopt;
  return product;
}

void scale_weights(Graph& graph, const Product& product, const Step& step) {
  const ValueId old = graph.node(product.node).input(1);
  Tensor weights = scaled_weights(graph.value(old).constant(), product.weight_axis, step.values);
  graph.set_input(product.node, 1, graph.add_constant(std::move(weights), graph.value(old).name()));
  graph.erase_value(old);
}

// Can the weights take `step`, with `bias` added behind them afterwards?
bool fits_weights(const Graph& graph, const Product& product, const Step& step, const Tensor& bias) {
  if (!is_finite(bias)) return false;
  const Tensor& weights = graph.value(graph.node(product.node).input(1)).constant();
  return !step.is_factor || may_scale_weights(weights, product.weight_axis, step.values, bias.elements<float>());
}

// Applies `step` to a product that takes a bias; false: it does not fit.
bool apply_with_bias(Graph& graph, const Product& product, const Step& step) {
  const Tensor* bias = constant_f32(graph, graph.node(product.node).input(2));
  const bool needs_bias = bias || !step.is_factor;
  Tensor new_bias = stepped_bias(bias, step);
  if (!fits_weights(graph, product, step, new_bias)) return false;
  if (step.is_factor) scale_weights(graph, product, step);
  if (needs_bias) graph.set_input(product.node, 2, graph.add_constant(std::move(new_bias)));
  return true;
}

bool fits_gemm(const Node& node, const Step& step) {
  if (&node.op() != &gemm_def() || step.is_factor) return true;
  return node.attributes().real("beta") == 1;
}

// One step behind a product with a bias of its own: true when it went into the weights.
bool fold_into_biased(Graph& graph, const Product& product) {
  const ValueId result = graph.node(product.node).output(0);
  const NodeId reader = only_reader(graph, result);
  if (!reader.is_valid()) return false;
  const auto step = read_step(graph, graph.node(reader), result, product.result_axis, product.channels);
  if (!step || !fits_gemm(graph.node(product.node), *step)) return false;
  if (graph.type(graph.node(reader).output(0)).dtype() != DType::f32) return false;
  if (!apply_with_bias(graph, product, *step)) return false;
  replace_pattern(graph, graph.node(reader).output(0), result);
  return true;
}

// A factor behind a matmul, perhaps with a sum in between.
bool fold_into_matmul(Graph& graph, const Product& product) {
  const ValueId result = graph.node(product.node).output(0);
  NodeId reader = only_reader(graph, result);
  if (!reader.is_valid()) return false;
  auto step = read_step(graph, graph.node(reader), result, -1, product.channels);
  const bool has_sum = step && !step->is_factor && &graph.node(reader).op() == &add_def();
  const NodeId sum = has_sum ? reader : NodeId{};
  const Step addend = has_sum ? *step : Step{};
  const ValueId scaled_value = has_sum ? graph.node(sum).output(0) : result;
  if (has_sum) {
    reader = only_reader(graph, scaled_value);
    if (!reader.is_valid()) return false;
    step = read_step(graph, graph.node(reader), scaled_value, -1, product.channels);
  }
  if (!step || !step->is_factor) return false;
  const ValueId final_value = graph.node(reader).output(0);
  if (graph.type(final_value).dtype() != DType::f32) return false;
  Step scaled_addend = has_sum ? addend : Step{std::vector<double>(step->values.size(), 0.0)};
  for (size_t c = 0; c < scaled_addend.values.size(); ++c) scaled_addend.values[c] *= step->values[c];
  Tensor new_addend = stepped_bias(nullptr, scaled_addend);
  if (!fits_weights(graph, product, *step, new_addend)) return false;
  scale_weights(graph, product, *step);
  if (has_sum) {
    const size_t slot = graph.node(sum).input(0) == result ? 1 : 0;
    graph.set_input(sum, slot, graph.add_constant(std::move(new_addend)));
  }
  replace_pattern(graph, final_value, scaled_value);
  return true;
}

}  // namespace

bool fold_scale(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    const auto product = product_of_weights(graph, id);
    bool changed = false;
    while (product && (product->has_bias_slot ? fold_into_biased : fold_into_matmul)(graph, *product)) changed = true;
    return changed;
  });
}

}  // namespace autograph

#include "support/moved_runs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_set>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/random.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/verify.h"
#include "graph/nested/replace_by_body.h"
#include "ops/defs.h"
#include "ops/real_values.h"
#include "ops/window/window_geometry.h"
#include "support/graphs/shape_operands.h"

namespace autograph {
namespace {

// By how much inputs and weights are moved, and what nodes make.
struct Movement {
  std::vector<double> factors;
  double noise;
};

const Movement kSingle{{1 + 3e-6, 1 - 5e-6, 1 + 2e-5}, 2e-7};
const Movement kHalf{{1 + 1e-3, 1 - 1e-3, 1 + 4e-3}, 1e-3};
// Runs of a later round: so many that a comparison of two values that are equal but for rounding goes both ways.
constexpr int kMany = 15;
// From the third round on all elements of a value move alike, by some roundings: where a kernel's tanh ends at the
// number below 1, all that it saturates end there, and a zero point of what lies between -1 and 1 is 127 or 128 by the
// last bit.
constexpr double kRoundingsTogether = 6;

bool is_half(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }

bool is_half(const Type& type) { return type.is_tensor() && is_half(type.dtype()); }

bool computes_in_half(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const auto& outputs = graph.node(id).outputs();
    return std::any_of(outputs.begin(), outputs.end(), [&](ValueId v) { return is_half(graph.type(v)); });
  });
}

// ---- Moved -----------------------------------------------------------------------------------------------------

Tensor moved(const Tensor& tensor, double factor) {
  const bool is_real = tensor.dtype() == DType::f32 || tensor.dtype() == DType::f64 || is_half(tensor.dtype());
  if (!is_real) return tensor;
  std::vector<double> values = tensor.to_f64();
  for (size_t i = 0; i < values.size(); ++i) values[i] *= i % 2 ? factor : 2 - factor;
  Tensor copy = Tensor::empty(tensor.dtype(), tensor.dims());
  store_reals(values, copy.view());
  return copy;
}

// Of what nodes make.
struct Noise {
  double reach;
  bool is_common;  // to all elements of a value
};

bool is_cell(const OpDef& op) {
  return &op == &lstm_def() || &op == &gru_def() || &op == &rnn_def() || &op == &dynamic_quantize_lstm_def();
}

// v + noise u s with u drawn for each element, so that equal values, or ones that rounding made equal, move apart, or
// for all of them together. The scale s is |v|, in states of recurrent layers at least 1: they are sums of terms of
// this size.
Var with_noise(Var x, const Noise& noise, int seed, bool is_state) {
  const auto reach = static_cast<float>(noise.reach);
  const Var wide = x.dtype() == DType::f16 ? cast(x, DType::f32) : x;
  const Var scale = is_state ? max({abs(wide), scalar_like(wide, 1)}) : wide;
  const Var drawn_like = noise.is_common ? scalar_like(wide, 0) : wide;
  const Var sum = add(wide, mul(scale, random_uniform_like(drawn_like, -reach, reach, static_cast<float>(seed))));
  return where(is_inf(x), x, sum.dtype() == x.dtype() ? sum : cast(sum, x.dtype()));
}

// 0 in the place of what kernels may flush. Kernels do so at different sizes: at one where an op divides, at that of
// the smallest normal number, or where 1 / x is no number any more; runs take turns.
Var flushed(Var x, int run) {
  constexpr double kSizes[] = {kNothing, 1.2e-38, 3e-39};
  const double size = kSizes[static_cast<size_t>(run / 2) % std::size(kSizes)];
  return where(less(abs(x), scalar_like(x, size)), scalar_like(x, 0), x);
}

bool is_gelu(const OpDef& op) { return &op == &gelu_def() || &op == &bias_gelu_def(); }

// Kernels give 0, or a few per cent of it more or less, for a gelu that is lost beside x: 1 + erf(x) is 0 in f32 from
// -5.6 on.
Var without_lost_gelu(Graph& graph, const Node& node, Var y) {
  Var x = abs(Var(graph, node.input(0)));
  if (&node.op() == &bias_gelu_def()) x = add(x, abs(Var(graph, node.input(1))));
  return where(less(abs(y), mul(x, scalar_like(x, 3e-7))), scalar_like(y, 0), y);
}

// Behind every node that makes floats: a stand-in for another rounding. So what a sum loses next to large terms is told
// even where these go in the end.
void add_noise(Graph& graph, const std::unordered_set<uint32_t>& still, const Noise& noise, int run) {
  int seed = 1000 * run;
  for (const NodeId id : graph.topological_order()) {
    const std::vector<ValueId> outputs = graph.node(id).outputs();
    for (const ValueId v : outputs) {
      const Type type = graph.type(v);
      const bool is_real = type.is_tensor() && (DTypeSet{DType::f32, DType::f64, DType::f16}.contains(type.dtype()));
      if (!is_real || still.contains(v.index)) continue;
      // What stands for the value while all that reads it is turned to what becomes of it.
      const Var stand_in = apply(get_op("identity"), {Var(graph, v)});
      graph.replace_uses(v, stand_in.id());
      graph.set_input(graph.value(stand_in.id()).producer(), 0, v);
      const Node& node = graph.node(id);
      const bool is_lost = is_gelu(node.op()) && run % 2 == 1;
      const Var made = is_lost ? without_lost_gelu(graph, Node(node), Var(graph, v)) : Var(graph, v);
      const Var noisy = with_noise(made, noise, ++seed, is_cell(graph.node(id).op()));
      graph.replace_uses(stand_in.id(), (run % 2 == 1 && !is_half(type) ? flushed(noisy, run) : noisy).id());
    }
  }
}

// The dequantization of a constant of few bits that makes `v`, turned or not; null where there is none.
const Node* narrow_weight(const Graph& graph, ValueId v) {
  NodeId producer = graph.value(v).producer();
  if (producer.is_valid() && &graph.node(producer).op() == &transpose_def()) {
    producer = graph.value(graph.node(producer).input(0)).producer();
  }
  if (!producer.is_valid() || &graph.node(producer).op() != &dequantize_linear_def()) return nullptr;
  const Node& node = graph.node(producer);
  return graph.value(node.input(0)).constant().is_present() ? &node : nullptr;
}

const Node* narrow_weight_of(const Graph& graph, const Node& node) {
  const bool is_product = &node.op() == &matmul_def() || &node.op() == &gemm_def();
  return is_product ? narrow_weight(graph, node.input(1)) : nullptr;
}

// May kernels round input 0 to 16 bits of the largest of a block (use_block_matmul)?
bool rounds_x(const Graph& graph, const Node& node) {
  const int64_t* bits = node.attributes().find_as<int64_t>("x_bits");
  return (bits && *bits == 16) || narrow_weight_of(graph, node);
}

// Numbers and their zero point are multiplied by themselves, so that what cancels in a weight is left as a rounding.
void move_narrow_weight(Graph& graph, NodeId id, const Tensor& scales, int seed) {
  constexpr double kLargestNumber = 255, kRounding = 0x1.0p-23;
  double largest = 0;
  for (const double scale : scales.to_f64()) largest = std::max(largest, std::abs(scale));
  const Var w(graph, graph.node(id).input(1));
  const auto reach = static_cast<float>(largest * kLargestNumber * kRounding);
  graph.set_input(id, 1, add(w, random_uniform_like(w, -reach, reach, static_cast<float>(seed))).id());
}

// Moves x of such a product by as much of the largest of a row, and its weights.
void round_before_narrow_weights(Graph& graph, int run) {
  constexpr float kReach = 0x1.0p-16F;
  int seed = 1000 * run + 500;
  for (const NodeId id : graph.topological_order()) {
    if (!rounds_x(graph, graph.node(id))) continue;
    const Node* weight = narrow_weight_of(graph, graph.node(id));
    const Tensor scales = weight ? graph.value(weight->input(1)).constant() : Tensor();
    const Var x(graph, graph.node(id).input(0));
    const Var drawn = random_uniform_like(x, -kReach, kReach, static_cast<float>(++seed));
    const Var rough = add(x, mul(reduce_max(abs(x), {-1}), drawn));
    graph.set_input(id, 0, where(is_inf(x), x, rough).id());
    if (scales.is_present() && graph.type(graph.node(id).input(1)).dtype() == DType::f32) {
      move_narrow_weight(graph, id, scales, ++seed);
    }
  }
}

// Exponents and the like: x^1.999 is no other rounding of x^2, but NaN below 0.
bool is_whole_number(const Tensor& tensor) {
  if (tensor.num_elements() != 1 || !dtypes::kFloat.contains(tensor.dtype())) return false;
  const double value = tensor.to_f64()[0];
  return value == std::nearbyint(value);
}

// Some gradients stand as their bodies, so that what cancels inside moves: where a soft cap saturates, 1 - tanh^2 is 0
// or a rounding of 1, which large terms are multiplied with; where a batch or a row varies much, its gradient is what
// is left of terms that are all but equal.
void open_gradients(Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    const OpDef& op = graph.node(id).op();
    const std::initializer_list<const OpDef*> opened = {
        &tiled_attention_grad_def(), &batch_normalization_grad_def(), &layer_normalization_grad_def(),
        &gru_gates_grad_def(),       &lstm_gates_grad_def(),          &rnn_gates_grad_def()};
    if (std::find(opened.begin(), opened.end(), &op) != opened.end()) replace_by_body(graph, id);
  }
}

std::optional<std::vector<Datum>> run_with(const TestGraph& test, const Movement& movement, int run,
                                           const Noise& noise) {
  const double factor = movement.factors[static_cast<size_t>(run) % movement.factors.size()];
  Graph graph = test.graph;
  open_gradients(graph);
  std::vector<Datum> inputs = test.inputs;
  for (Datum& input : inputs) {
    if (input.is_tensor()) input = moved(input.tensor(), factor);
  }
  const std::unordered_set<uint32_t> still = shape_operands(graph);
  for (const ValueId id : graph.constants()) {
    const Tensor& constant = graph.value(id).constant();
    if (!still.contains(id.index) && !is_whole_number(constant)) graph.set_constant(id, moved(constant, factor));
  }
  try {
    round_before_narrow_weights(graph, run);
    add_noise(graph, still, noise, run);
    return run_reference(graph, inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// ---- Wide ------------------------------------------------------------------------------------------------------

Tensor as(DType dtype, const Tensor& tensor) {
  Tensor copy = Tensor::empty(dtype, tensor.dims());
  store_reals(tensor.to_f64(), copy.view());
  return copy;
}

Graph widened(Graph graph);

AttributeValue widened(const AttributeValue& value) {
  if (const auto* dtype = std::get_if<DType>(&value)) return is_half(*dtype) ? DType::f32 : *dtype;
  if (const auto* body = std::get_if<GraphRef>(&value)) return std::make_shared<const Graph>(widened(**body));
  if (const auto* tensor = std::get_if<Tensor>(&value); tensor && is_half(tensor->dtype())) {
    return as(DType::f32, *tensor);
  }
  return value;
}

// The graph with f32 in the place of half precision.
Graph widened(Graph graph) {
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    if (is_half(type)) graph.set_type(id, Type(DType::f32, type.shape()));
  }
  for (const ValueId id : graph.constants()) {
    if (is_half(graph.type(id))) graph.set_constant(id, as(DType::f32, graph.value(id).constant()));
  }
  for (const NodeId id : graph.nodes()) {
    const Attributes attributes = graph.node(id).attributes();
    for (const auto& [name, value] : attributes) graph.set_attribute(id, name, widened(value));
  }
  infer_types(graph);
  return graph;
}

std::optional<std::vector<Datum>> run_wide(const TestGraph& test) {
  std::vector<Datum> inputs = test.inputs;
  for (Datum& input : inputs) {
    if (input.is_tensor() && is_half(input.tensor().dtype())) input = as(DType::f32, input.tensor());
  }
  try {
    std::vector<Datum> results = run_reference(widened(test.graph), inputs);
    for (size_t k = 0; k < results.size(); ++k) {
      const Type& type = test.graph.type(test.graph.outputs()[k]);
      if (is_half(type) && results[k].is_tensor()) results[k] = as(type.dtype(), results[k].tensor());
    }
    return results;
  } catch (const UserError&) {  // an op that takes half precision alone
    return std::nullopt;
  }
}

// Nothing where the reference refuses.
std::optional<std::vector<Datum>> run_if_legal(const Graph& graph, const std::vector<Datum>& inputs) {
  try {
    return run_reference(graph, inputs);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// ---- Without NaN -----------------------------------------------------------------------------------------------

std::optional<std::vector<Datum>> run_without_nan(const TestGraph& test) {
  Graph graph = test.graph;
  bool has_bounds = false;
  for (const NodeId id : graph.nodes()) {
    const OpDef& op = graph.node(id).op();
    const bool is_line = &op == &hard_sigmoid_def();  // and a clip
    if (&op != &relu_def() && &op != &clip_def() && !is_line) continue;
    const Var x(graph, graph.node(id).inputs()[0]);
    if (!dtypes::kFloat.contains(x.dtype())) continue;
    const bool falls = is_line && graph.node(id).attributes().real("alpha") < 0;
    const Var low = scalar_like(x, (falls ? 1 : -1) * std::numeric_limits<double>::infinity());
    graph.set_input(id, 0, where(is_nan(x), low, x).id());
    has_bounds = true;
  }
  if (!has_bounds) return std::nullopt;
  return run_if_legal(graph, test.inputs);
}

// ---- With padding in memory ------------------------------------------------------------------------------------

// Begins and ends of all axes of x; nothing where there is no padding, or where it is not known how much.
std::optional<std::vector<int64_t>> paddings_of(const Graph& graph, const Node& node) {
  const Shape &x = graph.type(node.input(0)).shape(), &w = graph.type(node.input(1)).shape();
  if (!x.is_static() || !w.is_static()) return std::nullopt;
  const Dims dims = x.static_dims(), w_dims = w.static_dims();
  const Dims kernel = node.attributes().get_or<Dims>("kernel_shape", Dims(w_dims.begin() + 2, w_dims.end()));
  const std::vector<WindowAxis> windows =
      resolve_windows(window_spec(node.attributes(), kernel), std::span(dims).subspan(2));
  std::vector<int64_t> begins(2, 0), ends(2, 0);
  bool has_padding = false;
  for (const WindowAxis& window : windows) {
    has_padding = has_padding || window.pad_begin > 0 || window.pad_end > 0;
    begins.push_back(window.pad_begin);
    ends.push_back(window.pad_end);
  }
  if (!has_padding) return std::nullopt;
  begins.insert(begins.end(), ends.begin(), ends.end());
  return begins;
}

std::optional<std::vector<Datum>> run_padded(const TestGraph& test) {
  Graph graph = test.graph;
  bool has_padding = false;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (&node.op() != &conv_def() && &node.op() != &conv_grad_weight_def()) continue;
    const auto paddings = paddings_of(graph, node);
    if (!paddings) continue;
    const Var x(graph, node.inputs()[0]);
    graph.set_attribute(id, "pads", std::vector<int64_t>(paddings->size() - 4, 0));
    graph.set_attribute(id, "auto_pad", std::string("NOTSET"));
    graph.set_input(id, 0, pad(x, *paddings).id());
    has_padding = true;
  }
  if (!has_padding) return std::nullopt;
  return run_if_legal(graph, test.inputs);
}

// ---- Without what masks hide ------------------------------------------------------------------------------------

bool hides_keys(const Node& node) {
  if (&node.op() != &tiled_attention_def() && &node.op() != &tiled_attention_grad_def()) return false;
  const auto is_window = [&](const char* side) { return node.attributes().integer(side) >= 0; };
  const size_t mask = &node.op() == &tiled_attention_def() ? 3 : 6;
  return node.attributes().integer("is_causal") != 0 || is_window("left_window_size") ||
         is_window("right_window_size") || node.input(mask).is_valid();
}

std::optional<std::vector<Datum>> run_hidden(const TestGraph& test) {
  Graph graph = test.graph;
  bool hides = false;
  for (const NodeId id : graph.nodes()) {
    if (!hides_keys(graph.node(id))) continue;
    // Queries, keys, values, and the gradient of what comes out.
    const size_t slots = &graph.node(id).op() == &tiled_attention_def() ? 3 : 4;
    for (size_t slot = 0; slot < slots; ++slot) {
      const Var x(graph, graph.node(id).input(slot));
      const Var is_finite = abs(x) < scalar_like(x, std::numeric_limits<double>::infinity());
      graph.set_input(id, slot, where(is_finite, x, scalar_like(x, 0)).id());
    }
    hides = true;
  }
  if (!hides) return std::nullopt;
  return run_if_legal(graph, test.inputs);
}

}  // namespace

std::vector<Datum> run_reference(const Graph& graph, const std::vector<Datum>& inputs) {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  options.threads = 1;
  return compile(graph, options).run(inputs);
}

MovedRuns run_moved(const TestGraph& test, int round) {
  const bool is_half = computes_in_half(test.graph);
  const Movement& movement = is_half ? kHalf : kSingle;
  const int few = static_cast<int>(movement.factors.size());
  const int first = round == 0 ? 0 : few + (round - 1) * kMany;
  const Noise noise = round > 1 ? Noise{movement.noise * kRoundingsTogether, true} : Noise{movement.noise, false};
  MovedRuns runs;
  for (int run = first; run < first + (round == 0 ? few : kMany); ++run) {
    if (auto result = run_with(test, movement, run, noise)) runs.moved.push_back(std::move(*result));
  }
  if (round > 0) return runs;
  if (auto result = is_half ? run_wide(test) : std::nullopt) runs.wide.push_back(std::move(*result));
  if (auto result = run_without_nan(test)) runs.without_nan.push_back(std::move(*result));
  if (auto result = run_padded(test)) runs.padded.push_back(std::move(*result));
  if (auto result = run_hidden(test)) runs.hidden.push_back(std::move(*result));
  return runs;
}

}  // namespace autograph

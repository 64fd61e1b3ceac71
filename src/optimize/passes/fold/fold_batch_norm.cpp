// fold_batch_norm: conv followed by batch normalization with given statistics becomes one conv.
//
//   factor[m] = scale[m] / sqrt(var[m] + epsilon)      w'[m,...] = w[m,...] * factor[m]
//   b'[m] = (b[m] - mean[m]) * factor[m] + bias[m]
//
// A normalization behind a concat of such convolutions, along the channels, goes into each of them.
//
// Precondition: f32, weights and statistics are constants, nothing else reads the conv, no training mode, and no factor
// takes the weights out of the range of f32 (optimize/weight_scaling.h), as a tiny variance can. The epsilon is that of
// the model. Computed in f64 and rounded once.
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/weight_scaling.h"

namespace autograph {
namespace {

// What a normalization does to channels first, first + 1, ... of its input, in terms of the convolution that makes
// them: y = conv * factors + bias.
struct Folded {
  std::vector<double> factors;
  std::vector<float> bias;
};

Folded fold_statistics(const Graph& graph, const BatchStatistics& norm, const Node& conv, size_t first) {
  const Tensor* own_bias = constant_f32(graph, conv.input(2));
  const auto channels = static_cast<size_t>(constant_f32(graph, conv.input(1))->dims()[0]);
  Folded folded;
  for (size_t m = 0; m < channels; ++m) {
    const size_t c = first + m;
    const double own = own_bias ? static_cast<double>(own_bias->data<float>()[m]) : 0.0;
    folded.factors.push_back(norm.factor[c]);
    folded.bias.push_back(static_cast<float>((own - norm.mean[c]) * norm.factor[c] + norm.bias[c]));
  }
  return folded;
}

// The conv that makes `x` when it can take `norm` for channels `first`, ... of the normalization's; else an invalid id.
NodeId find_conv(const Graph& graph, const BatchStatistics& norm, ValueId x, size_t first) {
  const Node* conv = made_once_by(graph, x, conv_def());
  if (!conv || !constant_f32(graph, conv->input(1))) return {};
  if (conv->input(2).is_valid() && !constant_f32(graph, conv->input(2))) return {};
  const Folded folded = fold_statistics(graph, norm, *conv, first);
  const bool fits = may_scale_weights(*constant_f32(graph, conv->input(1)), 0, folded.factors, folded.bias);
  return fits ? graph.value(x).producer() : NodeId{};
}

// A convolution, and the first channel of the normalization that it makes.
struct Part {
  NodeId conv;
  size_t first = 0;
};

// The convolutions that can take `norm` of `x`: the one that makes `x`, or all that a concat joins along the channels;
// none where one of them cannot.
std::vector<Part> find_parts(const Graph& graph, const BatchStatistics& norm, ValueId x) {
  if (const NodeId conv = find_conv(graph, norm, x, 0); conv.is_valid()) return {{conv}};
  const Node* concat = made_once_by(graph, x, concat_def());
  if (!concat || concat->attributes().integer("axis") != 1) return {};
  std::vector<Part> parts;
  size_t first = 0;
  for (const ValueId input : concat->inputs()) {
    const NodeId conv = find_conv(graph, norm, input, first);
    if (!conv.is_valid()) return {};
    parts.push_back({conv, first});
    first += static_cast<size_t>(constant_f32(graph, graph.node(conv).input(1))->dims()[0]);
  }
  return parts;
}

void fold(Graph& graph, const Part& part, const BatchStatistics& norm) {
  const Node& conv = graph.node(part.conv);
  const Folded folded = fold_statistics(graph, norm, conv, part.first);
  Tensor w = scaled_weights(*constant_f32(graph, conv.input(1)), 0, folded.factors);
  Tensor b = Tensor::of<float>({w.dims()[0]}, folded.bias);
  const std::string name = graph.value(conv.input(1)).name();
  graph.set_input(part.conv, 1, graph.add_constant(std::move(w), name));
  graph.set_input(part.conv, 2, graph.add_constant(std::move(b), name.empty() ? "" : name + ".bias"));
}

}  // namespace

bool fold_batch_norm(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    const auto norm = read_batch_statistics(graph, graph.node(id));
    if (!norm) return false;
    const ValueId x = graph.node(id).input(0);
    const std::vector<Part> parts = find_parts(graph, *norm, x);
    if (parts.empty()) return false;
    for (const Part& part : parts) {
      fold(graph, part, *norm);
      const Provenance& own = graph.node(part.conv).provenance();
      graph.set_provenance(part.conv, Provenance::merged(own, graph.node(id).provenance()));
    }
    replace_node(graph, id, {x});
    return true;
  });
}

}  // namespace autograph

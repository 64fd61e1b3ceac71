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
#include <cmath>

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

Folded fold_statistics(const Graph& graph, const Node& norm, const Node& conv, size_t first) {
  const double epsilon = norm.attributes().real("epsilon");
  const auto scale = constant_f32(graph, norm.input(1))->elements<float>();
  const auto bias = constant_f32(graph, norm.input(2))->elements<float>();
  const auto mean = constant_f32(graph, norm.input(3))->elements<float>();
  const auto var = constant_f32(graph, norm.input(4))->elements<float>();
  const Tensor* own_bias = constant_f32(graph, conv.input(2));
  const auto channels = static_cast<size_t>(constant_f32(graph, conv.input(1))->dims()[0]);
  Folded folded;
  for (size_t m = 0; m < channels; ++m) {
    const size_t c = first + m;
    const double factor = scale[c] / std::sqrt(static_cast<double>(var[c]) + epsilon);
    const double own = own_bias ? static_cast<double>(own_bias->data<float>()[m]) : 0.0;
    folded.factors.push_back(factor);
    folded.bias.push_back(static_cast<float>((own - mean[c]) * factor + bias[c]));
  }
  return folded;
}

// The conv that makes `x_id` when it can take `norm` for channels `first`, ... of the normalization's; else an invalid
// id.
NodeId find_conv(const Graph& graph, const Node& norm, ValueId x_id, size_t first) {
  if (&norm.op() != &batch_normalization_def() || norm.outputs().size() != 1) return {};
  if (norm.attributes().flag("training_mode")) return {};
  for (size_t slot = 1; slot <= 4; ++slot) {
    if (!constant_f32(graph, norm.input(slot))) return {};
  }
  const Node* conv = made_once_by(graph, x_id, conv_def());
  if (!conv || !constant_f32(graph, conv->input(1))) return {};
  if (conv->input(2).is_valid() && !constant_f32(graph, conv->input(2))) return {};
  const Folded folded = fold_statistics(graph, norm, *conv, first);
  const bool fits = may_scale_weights(*constant_f32(graph, conv->input(1)), 0, folded.factors, folded.bias);
  return fits ? graph.value(x_id).producer() : NodeId{};
}

void fold(Graph& graph, NodeId conv_id, NodeId norm_id) {
  const Node& conv = graph.node(conv_id);
  const Folded folded = fold_statistics(graph, graph.node(norm_id), conv, 0);
  Tensor w = scaled_weights(*constant_f32(graph, conv.input(1)), 0, folded.factors);
  Tensor b = Tensor::of<float>({w.dims()[0]}, folded.bias);
  const std::string name = graph.value(conv.input(1)).name();
  graph.set_input(conv_id, 1, graph.add_constant(std::move(w), name));
  graph.set_input(conv_id, 2, graph.add_constant(std::move(b), name.empty() ? "" : name + ".bias"));
  replace_value(graph, graph.node(norm_id).output(0), graph.node(conv_id).output(0));
  graph.erase_node(norm_id);
}

// Elements begin .. begin + count of a vector.
ValueId piece_of(Graph& graph, ValueId vector, int64_t begin, int64_t count) {
  const auto elements = graph.value(vector).constant().elements<float>();
  const auto piece = elements.subspan(static_cast<size_t>(begin), static_cast<size_t>(count));
  return graph.add_constant(Tensor::of<float>({count}, std::vector<float>(piece.begin(), piece.end())));
}

// The channels of each input of the concat in front of `norm`, when all of them are convolutions that can take a
// normalization; empty otherwise.
std::vector<int64_t> channels_of_branches(const Graph& graph, const Node& norm) {
  if (&norm.op() != &batch_normalization_def()) return {};
  const Node* concat = made_once_by(graph, norm.input(0), concat_def());
  if (!concat || concat->attributes().integer("axis") != 1) return {};
  std::vector<int64_t> channels;
  size_t first = 0;
  for (const ValueId input : concat->inputs()) {
    const Shape& shape = graph.type(input).shape();
    if (!shape.has_rank() || shape.rank() < 2 || !shape[1].is_known()) return {};
    if (!find_conv(graph, norm, input, first).is_valid()) return {};
    channels.push_back(shape[1].value());
    first += static_cast<size_t>(shape[1].value());
  }
  return channels;
}

// norm(concat(a, b, ...)) becomes concat(norm(a), norm(b), ...) where the norms can then go into convolutions.
bool distribute(Graph& graph, NodeId norm_id) {
  const std::vector<int64_t> channels = channels_of_branches(graph, graph.node(norm_id));
  if (channels.empty()) return false;
  const NodeId concat_id = graph.value(graph.node(norm_id).input(0)).producer();
  int64_t begin = 0;
  for (size_t k = 0; k < channels.size(); ++k) {
    const Node& norm = graph.node(norm_id);
    const Provenance origins = norm.provenance();
    const Attributes attributes = norm.attributes();
    std::vector<ValueId> inputs{graph.node(concat_id).input(k)};
    const std::vector<ValueId> parameters(norm.inputs().begin() + 1, norm.inputs().end());
    for (const ValueId v : parameters) inputs.push_back(piece_of(graph, v, begin, channels[k]));
    const NodeId piece = graph.add_node(batch_normalization_def(), inputs, attributes, {origins, 1});
    graph.set_input(concat_id, k, graph.node(piece).output(0));
    fold(graph, graph.value(inputs[0]).producer(), piece);
    begin += channels[k];
  }
  replace_value(graph, graph.node(norm_id).output(0), graph.node(concat_id).output(0));
  graph.erase_node(norm_id);
  return true;
}

}  // namespace

bool fold_batch_norm(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    const NodeId conv = find_conv(graph, graph.node(id), graph.node(id).input(0), 0);
    if (conv.is_valid()) fold(graph, conv, id);
    return conv.is_valid() || distribute(graph, id);
  });
}

}  // namespace autograph

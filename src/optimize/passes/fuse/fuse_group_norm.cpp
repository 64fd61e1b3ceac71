// fuse_group_norm: group normalization as exporters without that op spell it,
//   add(mul(reshape(instance_normalization(reshape(x, [batch, groups, -1]))), scale[c]), bias[c]),
// becomes one node. Without the product or the sum the parameters of the groups are repeated for their channels.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// x in groups of neighbouring channels, normalised and back in its shape.
struct Grouped {
  ValueId x;
  ValueId y;
  int64_t channels = 0;
  int64_t groups = 0;
  std::vector<double> scale = {};  // by channel
  std::vector<double> bias = {};
};

// The elements of a constant [groups], each as often as the group has channels.
std::optional<std::vector<double>> by_channel(const Graph& graph, ValueId v, int64_t groups, int64_t channels) {
  const Value& value = graph.value(v);
  if (!value.is_constant() || value.constant().num_elements() != groups) return std::nullopt;
  const std::vector<double> given = value.constant().to_f64();
  std::vector<double> result;
  for (int64_t c = 0; c < channels; ++c) result.push_back(given[static_cast<size_t>(c / (channels / groups))]);
  return result;
}

std::optional<Grouped> match_grouped(const Graph& graph, const Node& norm) {
  const Node* split = made_once_by(graph, norm.input(0), reshape_def());
  if (!split || num_reads(graph, norm.output(0)) != 1) return std::nullopt;
  const std::vector<Use>& uses = graph.value(norm.output(0)).uses();
  if (uses.empty() || uses[0].slot != 0 || &graph.node(uses[0].node).op() != &reshape_def()) return std::nullopt;
  Grouped found{.x = split->input(0), .y = graph.node(uses[0].node).output(0)};
  const Type& x = graph.type(found.x);
  const Shape& rows = graph.type(norm.input(0)).shape();
  if (!same_tensor_type(x, graph.type(found.y)) || x.dtype() != DType::f32) return std::nullopt;
  // The batch must stay apart; what follows it may be cut in any way.
  const bool apart = x.shape().rank() >= 3 && rows.has_rank() && rows.rank() >= 2 && rows[0] == x.shape()[0] &&
                     rows[1].is_known() && x.shape()[1].is_known();
  if (!apart) return std::nullopt;
  found.channels = x.shape()[1].value();
  found.groups = rows[1].value();
  if (found.groups < 1 || found.channels % found.groups != 0) return std::nullopt;
  const auto scale = by_channel(graph, norm.input(1), found.groups, found.channels);
  const auto bias = by_channel(graph, norm.input(2), found.groups, found.channels);
  if (!scale || !bias) return std::nullopt;
  found.scale = *scale;
  found.bias = *bias;
  return found;
}

// The elements by channel of a constant that broadcasts to a tensor of this rank along its channels alone.
std::optional<std::vector<double>> channel_parameter(const Graph& graph, ValueId v, int64_t channels, int64_t rank) {
  const Value& value = graph.value(v);
  if (!value.is_constant()) return std::nullopt;
  const Dims& dims = value.constant().dims();
  const auto given = static_cast<int64_t>(dims.size());
  if (given > rank) return std::nullopt;
  for (int64_t a = 0; a < given; ++a) {
    const bool is_channel = a + rank - given == 1;
    const int64_t extent = dims[static_cast<size_t>(a)];
    if (extent != 1 && !(is_channel && extent == channels)) return std::nullopt;
  }
  std::vector<double> elements = value.constant().to_f64();
  if (elements.size() == 1) elements.resize(static_cast<size_t>(channels), elements[0]);
  return elements;
}

// When the only reader of found.y is `op` with a parameter by channel: the parameter, and found.y becomes the result.
std::optional<std::vector<double>> take_parameter(const Graph& graph, const OpDef& op, Grouped& found) {
  const std::vector<Use>& uses = graph.value(found.y).uses();
  if (num_reads(graph, found.y) != 1 || uses.size() != 1) return std::nullopt;
  const Node& node = graph.node(uses[0].node);
  if (&node.op() != &op || !same_tensor_type(graph.type(node.output(0)), graph.type(found.x))) return std::nullopt;
  const auto parameter =
      channel_parameter(graph, node.input(1 - uses[0].slot), found.channels, graph.type(found.x).shape().rank());
  if (parameter) found.y = node.output(0);
  return parameter;
}

// Do all fit f32? Products of two parameters may not.
bool fits(const std::vector<double>& elements) {
  return std::all_of(elements.begin(), elements.end(), [](double e) { return std::isfinite(static_cast<float>(e)); });
}

ValueId add_parameter(Graph& graph, const std::vector<double>& elements) {
  Tensor tensor = Tensor::empty(DType::f32, {static_cast<int64_t>(elements.size())});
  std::transform(elements.begin(), elements.end(), tensor.mutable_data<float>(),
                 [](double element) { return static_cast<float>(element); });
  return graph.add_constant(std::move(tensor));
}

bool fuse(Graph& graph, const PassContext& context, NodeId id) {
  const Node& norm = graph.node(id);
  auto found = match_grouped(graph, norm);
  if (!found) return false;
  if (const auto factor = take_parameter(graph, mul_def(), *found)) {
    for (size_t c = 0; c < factor->size(); ++c) {
      found->scale[c] *= (*factor)[c];
      found->bias[c] *= (*factor)[c];
    }
  }
  if (const auto addend = take_parameter(graph, add_def(), *found)) {
    for (size_t c = 0; c < addend->size(); ++c) found->bias[c] += (*addend)[c];
  }
  if (!fits(found->scale) || !fits(found->bias)) return false;
  const float epsilon = norm.attributes().real("epsilon");
  const NodeId fused = graph.add_node(group_normalization_def(),
                                      {found->x, add_parameter(graph, found->scale), add_parameter(graph, found->bias)},
                                      {{"num_groups", found->groups}, {"epsilon", epsilon}});
  if (!context.expects_kernel || !context.expects_kernel(graph, fused)) {
    graph.erase_node(fused);
    return false;
  }
  replace_pattern(graph, found->y, graph.node(fused).output(0));
  return true;
}

}  // namespace

bool fuse_group_norm(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    const bool is_norm = graph.is_live(id) && &graph.node(id).op() == &instance_normalization_def();
    if (is_norm) changed = fuse(graph, context, id) || changed;
  }
  return changed;
}

}  // namespace autograph

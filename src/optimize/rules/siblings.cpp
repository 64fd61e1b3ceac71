#include "optimize/rules/siblings.h"

#include <algorithm>

#include "optimize/match.h"
#include "optimize/rules/pattern/ancestry.h"
#include "optimize/rules/pattern/reachability.h"
#include "tensor/front_axis.h"

namespace autograph {

Dims dims_of(const Graph& graph, ValueId value) { return graph.type(value).shape().static_dims(); }

bool same_dims(const RuleMatch& match, std::string_view a, std::string_view b) {
  return match.dims(a) == match.dims(b);
}

bool x_y_agree(const RuleMatch& match) { return same_dims(match, "x", "y"); }

bool same_dims_but(const Dims& a, const Dims& b, int64_t axis) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && static_cast<int64_t>(i) != axis) return false;
  }
  return true;
}

NodeId producer_of_op(const Graph& graph, ValueId value, const OpDef& op) {
  return made_by(graph, value, op) ? graph.value(value).producer() : NodeId{};
}

bool has_one_reader(const Graph& graph, ValueId value) { return only_reader(graph, value).is_valid(); }

std::vector<NodeId> readers_of(const Graph& graph, ValueId value, const OpDef& op, size_t slot) {
  std::vector<NodeId> readers;
  for (const Use& use : graph.value(value).uses()) {
    if (use.slot == slot && &graph.node(use.node).op() == &op) readers.push_back(use.node);
  }
  std::sort(readers.begin(), readers.end());
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

bool are_independent(const Graph& graph, NodeId a, NodeId b) {
  if (a == b) return false;
  const Ancestry* known = ancestry_of(graph);
  if (known && known->knows(a) && known->knows(b)) return !known->may_lead(a, b) && !known->may_lead(b, a);
  const auto& from_a = graph.node(a);
  const auto& from_b = graph.node(b);
  return !may_reach(graph, from_a.outputs(), from_b.inputs(), {}) &&
         !may_reach(graph, from_b.outputs(), from_a.inputs(), {});
}

std::vector<NodeId> independent_group(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<NodeId> group;
  for (const NodeId node : nodes) {
    const bool fits =
        std::all_of(group.begin(), group.end(), [&](NodeId member) { return are_independent(graph, member, node); });
    if (fits) group.push_back(node);
  }
  return group;
}

std::vector<NodeId> makers_of(const Graph& graph, const std::vector<ValueId>& values,
                              FunctionRef<bool(const Node&)> fits) {
  std::vector<NodeId> makers;
  for (const ValueId value : values) {
    const NodeId maker = graph.value(value).producer();
    if (!maker.is_valid() || graph.value(value).slot() != 0 || !has_one_reader(graph, value)) return {};
    if (!fits(graph.node(maker))) return {};
    makers.push_back(maker);
  }
  return makers.size() > 1 ? makers : std::vector<NodeId>{};
}

std::vector<ValueId> inputs_of(const Graph& graph, const std::vector<NodeId>& nodes, size_t slot) {
  std::vector<ValueId> inputs;
  for (const NodeId node : nodes) inputs.push_back(graph.node(node).input(slot));
  return inputs;
}

std::vector<ValueId> outputs_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  std::vector<ValueId> outputs;
  for (const NodeId node : nodes) outputs.push_back(graph.node(node).output(0));
  return outputs;
}

std::vector<int64_t> extents_along(const Graph& graph, const std::vector<ValueId>& values, int64_t axis) {
  std::vector<int64_t> extents;
  for (const ValueId value : values) extents.push_back(dims_of(graph, value)[static_cast<size_t>(axis)]);
  return extents;
}

bool same_shape_but(const Graph& graph, ValueId a, ValueId b, int64_t axis) {
  const Shape& left = graph.type(a).shape();
  const Shape& right = graph.type(b).shape();
  if (left.rank() != right.rank()) return false;
  for (int64_t i = 0; i < left.rank(); ++i) {
    if (i != axis && !left[i].same_as(right[i])) return false;
  }
  return true;
}

int64_t axis_of(const Graph& graph, NodeId node) {
  const int64_t axis = graph.node(node).attributes().integer("axis");
  return front_axis(axis, graph.type(graph.node(node).input(0)).shape().rank());
}

bool all_are(const std::vector<int64_t>& list, int64_t value) {
  return std::all_of(list.begin(), list.end(), [&](int64_t element) { return element == value; });
}

int64_t element_count(const Dims& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

bool same_op(const Node& a, const Node& b) { return &a.op() == &b.op() && equal(a.attributes(), b.attributes()); }

}  // namespace autograph

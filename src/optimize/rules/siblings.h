// What rules ask that take all nodes of a kind at once: who else reads a value, who may run side by side.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "optimize/rules/rule.h"

namespace autograph {

/// Dims of a value of static type.
Dims dims_of(const Graph& graph, ValueId value);

/// Have what two variables stand for the same dims?
bool same_dims(const RuleMatch& match, std::string_view a, std::string_view b);

/// Have x and y the same dims? What many guards ask.
bool x_y_agree(const RuleMatch& match);

/// The same dims, `axis` apart (-1: none apart).
bool same_dims_but(const Dims& a, const Dims& b, int64_t axis);

/// The node that makes output 0 as `value`, when its op has this name; else an invalid id.
NodeId producer_of_op(const Graph& graph, ValueId value, const OpDef& op);

/// Is `value` read exactly once, as an input of a node?
bool has_one_reader(const Graph& graph, ValueId value);

/// Nodes with the op named that read `value` as input `slot`, each once, by id.
std::vector<NodeId> readers_of(const Graph& graph, ValueId value, const OpDef& op, size_t slot);

/// Does neither node depend on the other? No when it would take long to tell.
bool are_independent(const Graph& graph, NodeId a, NodeId b);

/// The largest group that starts with the first of `nodes` and takes those on that depend on none taken before.
std::vector<NodeId> independent_group(const Graph& graph, const std::vector<NodeId>& nodes);

/// Are `a` and `b` the first two, by id, of the nodes with their op that read `shared` as input `slot` and are
/// `is_alike`? (Which must hold for both.) For guards of rules that merge whole groups, so that a group is found once.
template <class IsAlike>
bool are_first_two(const Graph& graph, ValueId shared, size_t slot, NodeId a, NodeId b, IsAlike&& is_alike) {
  if (b < a) return false;
  const OpDef* op = &graph.node(a).op();
  for (const Use& use : graph.value(shared).uses()) {
    if (use.slot != slot || !(use.node < b) || use.node == a || &graph.node(use.node).op() != op) continue;
    if (is_alike(use.node)) return false;
  }
  return true;
}

/// The makers of `values`, when each value is output 0 and read once, and all makers fit; else empty, as where there
/// are less than two values.
std::vector<NodeId> makers_of(const Graph& graph, const std::vector<ValueId>& values,
                              FunctionRef<bool(const Node&)> fits);

/// Input `slot` of each of the nodes.
std::vector<ValueId> inputs_of(const Graph& graph, const std::vector<NodeId>& nodes, size_t slot = 0);

/// Output 0 of each of the nodes.
std::vector<ValueId> outputs_of(const Graph& graph, const std::vector<NodeId>& nodes);

/// Extents of values of static types.
std::vector<int64_t> extents_along(const Graph& graph, const std::vector<ValueId>& values, int64_t axis);

/// The same extents, `axis` apart, of values of static type.
bool same_shape_but(const Graph& graph, ValueId a, ValueId b, int64_t axis);

/// The attribute `axis` of a node, counted from the front of its first input.
int64_t axis_of(const Graph& graph, NodeId node);

/// Is every element `value`?
bool all_are(const std::vector<int64_t>& list, int64_t value);

/// Number of elements.
int64_t element_count(const Dims& dims);

/// Same op and same attributes.
bool same_op(const Node& a, const Node& b);

}  // namespace autograph

// Nodes that stand near each other though they share no value: the parts of towers, experts and heads that do the same
// work on inputs and weights of their own.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "base/function_ref.h"

namespace autograph {

/// Nodes with the op of `first` that `is_alike` accepts, found by walking up and down from it, and that depend on none
/// of those taken before: `first`, then by id. Looks at a bounded number of nodes. Empty when there is no other, or
/// when one in front of `first` (by id) would lead a group with it: each group is found once.
std::vector<NodeId> group_near(const Graph& graph, NodeId first, FunctionRef<bool(NodeId)> is_alike);

/// Sorted so that pieces of one split stand in its order; values from elsewhere by who makes them.
void sort_by_origin(const Graph& graph, std::vector<NodeId>& nodes, size_t slot);

}  // namespace autograph

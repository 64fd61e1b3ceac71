// Cutting a part out of a graph.
#pragma once

#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// A part of a graph as a graph of its own.
struct Subgraph {
  Graph graph;
  std::vector<ValueId> inputs;   ///< Values of the whole that its inputs stand for, in order.
  std::vector<ValueId> outputs;  ///< Values of the whole that its outputs stand for, in order.
};

/// The nodes `nodes` of `graph`, in any number and order. What they read from elsewhere becomes inputs (constants are
/// taken along), what others or the graph's outputs read of them becomes outputs. Inputs and outputs keep the names of
/// their values; those without get one.
Subgraph extract_subgraph(const Graph& graph, const std::vector<NodeId>& nodes);

}  // namespace autograph

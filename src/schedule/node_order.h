// The order in which the nodes of a graph run one after the other where no schedule says so.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/verify.h"

namespace autograph {

/// The order of insertion when it is topological: exporters write files in an order that keeps few tensors alive. Else
/// depth first from the outputs and from the updates of states, these in the order or against it, whichever keeps fewer
/// bytes alive. `known` are values that need not be computed.
std::vector<NodeId> sequential_order(const Graph& graph, const KnownValues& known);

}  // namespace autograph

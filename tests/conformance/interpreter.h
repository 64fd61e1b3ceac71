// Runs a graph node by node on the reference implementations, inferring every type again from the values at hand.
//
// The simplest thing that can be right: no plan, no reuse of memory, no threads. Tests compare everything else with it.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/tensor.h"

namespace autograph::tests {

/// Outputs of `graph` for these inputs; throws what inference and the ops throw.
std::vector<Datum> interpret(const Graph& graph, const std::vector<Datum>& inputs);

}  // namespace autograph::tests

// Copies the nodes of one graph into another.
#pragma once

#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Copies the nodes and constants of `body` into `graph`, reading `inputs` in place of the inputs of `body` (one each;
/// an invalid id stands for an input not given). Returns the values that stand for the outputs of `body`. Types are
/// inferred anew from those of `inputs`.
std::vector<ValueId> inline_graph(Graph& graph, const Graph& body, const std::vector<ValueId>& inputs);

}  // namespace autograph

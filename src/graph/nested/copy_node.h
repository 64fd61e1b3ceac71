// Copies single nodes, of one graph into another or once more into their own.
#pragma once

#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Copies `node` into `to`. It reads what `copies` has in place of its inputs, by value of the graph that it is copied
/// from; what stands for its outputs is entered there. Types are inferred anew; throws as Graph::add_node() does.
NodeId copy_node(Graph& to, const Node& node, std::vector<ValueId>& copies);

/// The same with the types that the outputs have in `from`, which the node is of.
NodeId copy_node_typed(Graph& to, const Graph& from, const Node& node, std::vector<ValueId>& copies);

}  // namespace autograph

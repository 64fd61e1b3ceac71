// What has been added to a graph since it had so many nodes.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// All live nodes from `first_new` (an earlier Graph::node_capacity()) on come from where `provenance` says.
inline void set_provenance_of_new(Graph& graph, size_t first_new, const Provenance& provenance) {
  for (size_t n = first_new; n < graph.node_capacity(); ++n) {
    const NodeId added{static_cast<uint32_t>(n)};
    if (graph.is_live(added)) graph.set_provenance(added, provenance);
  }
}

}  // namespace autograph

// How wide and how deep a graph is.
#pragma once

#include <cstdint>

#include "autograph/graph.h"

namespace autograph {

/// Width and depth of a graph's nodes.
struct GraphExtent {
  int64_t width = 0;  ///< Most nodes of which none depends on another: what can run at once.
  int64_t depth = 0;  ///< Nodes on the longest path.
};

/// Measures `graph`, nested graphs not included. The width is exact up to 20,000 nodes (a maximum antichain, by
/// Dilworth's theorem from a minimum cover by paths); above, it is the largest number of nodes at one depth, which is a
/// lower bound.
GraphExtent measure_extent(const Graph& graph);

}  // namespace autograph

// What a node costs in a graph that the finishing passes have yet to see.
//
// Rules want plain ops, one a node; the passes behind the search then make groups of them run as one. So the cost of an
// elementwise node depends on its neighbours: behind a convolution or a product it is computed while the result is in
// registers, in a chain it is computed while the tile is in cache. Tensors that are joined or taken apart in one piece
// are written where they belong.
#pragma once

#include "autograph/graph.h"
#include "cost/cost_model.h"

namespace autograph {

/// See above. For one thread at a time.
class FusedCost {
 public:
  explicit FusedCost(CostModel& model) : model_(model) {}
  /// Microseconds that the node adds to a run on all threads; depends on the node, on what makes its inputs, and on how
  /// many read these, and on nothing else.
  double node_us(const Graph& graph, NodeId node);

 private:
  CostModel& model_;
};

}  // namespace autograph

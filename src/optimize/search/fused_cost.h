// What a node costs in a graph that the finishing passes have yet to see.
//
// Rules want plain ops, one a node; the passes behind the search then make groups of them run as one. So the cost of an
// elementwise node depends on its neighbours: behind a convolution or a product it is computed while the result is in
// registers, in a chain it is computed while the tile is in cache. Tensors that are joined or taken apart in one piece
// are written where they belong.
#pragma once

#include "autograph/graph.h"
#include "optimize/cost/cost_model.h"

namespace autograph {

/// For one thread at a time.
class FusedCost {
 public:
  /// The sum over nodes is what they take one after the other; or, where so many streams share the device, what they
  /// keep busy of it: a stream while they run, processors and bandwidth while they work (KernelLoad::area_us).
  explicit FusedCost(CostModel& model, int shared_streams = 1) : model_(model), shared_streams_(shared_streams) {}
  /// Microseconds that the node adds to a run on all threads; depends on the node, on what makes its inputs (or what
  /// these are views of), and on how many read these, and on nothing else.
  double node_us(const Graph& graph, NodeId node);
  /// What a node that takes `us` by node_us() takes of a device that streams share; nothing where they do not.
  KernelLoad node_load(const Graph& graph, NodeId node, double us);
  /// What a node that takes `us` by node_us(), and `load` by node_load(), adds to the sum.
  double sum_us(double us, const KernelLoad& load) const;

 private:
  CostModel& model_;
  int shared_streams_;
};

}  // namespace autograph

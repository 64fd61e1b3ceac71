// A part of a graph as a graph of its own, and the way back.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/hash.h"

namespace autograph {

/// Values that come from outside are inputs, values that are read outside are outputs; constants stay
/// constants and share their elements.
struct PartGraph {
  Graph graph;
  std::vector<ValueId> inputs;   ///< In the whole graph, parallel to graph.inputs().
  std::vector<ValueId> outputs;  ///< In the whole graph, parallel to graph.outputs().
  /// By value of `graph`: the constant of the whole graph that it is; invalid for all others.
  std::vector<ValueId> constants;
};

/// Cuts parts out of a graph, one after the other, each in a time that is a matter of the part alone.
class PartCutter {
 public:
  /// `whole` must outlive this and stay as it is.
  explicit PartCutter(const Graph& whole) : whole_(whole), inner_(whole.value_capacity()) {}

  /// `nodes` must be in topological order and have no path that leaves them and comes back.
  PartGraph cut(const std::vector<NodeId>& nodes);

 private:
  void bring_in(PartGraph& part, ValueId v);

  const Graph& whole_;
  std::vector<ValueId> inner_;  // by value of the whole: what it is in the part at hand
};

/// The same of a single part.
PartGraph extract_part(const Graph& whole, const std::vector<NodeId>& nodes);

/// Equal for parts that differ in the elements of their constants and in names alone: ids of both are the same then.
Hash128 part_key(const PartGraph& part);

/// Puts `replacement`, made from part.graph by rewrites, in the place of the part's nodes. `now` tells for every value
/// of the graph at the start what stands for it now, and is kept up to date. What is replaced is left to erase_dead().
void replace_part(Graph& whole, const PartGraph& part, const Graph& replacement, std::vector<ValueId>& now);

}  // namespace autograph

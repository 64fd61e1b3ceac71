// Which of several graphs to try first: those that are promising and differ, not five that differ by one small rewrite.
#pragma once

#include <cstddef>
#include <functional>
#include <unordered_map>
#include <vector>

#include "autograph/graph.h"
#include "autograph/hash.h"

namespace autograph {

/// The op of a node with its attributes and types, and which of its operands are constants: equal for nodes alike.
Hash128 kind_alone(const Graph& graph, const Node& node);

/// What a graph does, without what its weights are: how many microseconds each kind of node takes in it. A kind is the
/// op with its attributes and types, and what makes the operands.
class Composition {
 public:
  /// `node_us` tells what a node takes; those that take nothing do not count.
  Composition(const Graph& graph, const std::function<double(NodeId)>& node_us);

  /// Share of the work of both that only one of them does: 0 for equal graphs, 1 for those that share no node.
  double distance(const Composition& other) const;

 private:
  std::unordered_map<uint64_t, double> us_of_;  // by kind
  double sum_us_ = 0;
};

/// Graphs that are nearer to each other than this are variants of one graph: what one takes tells of the other.
inline constexpr double kNearlyTheSame = 0.02;

/// The numbers of graphs in the order in which to try them, from a list that has the most promising first: each that is
/// near none before it, then the others; both in the order of the list.
std::vector<size_t> diverse_order(const std::vector<Composition>& graphs);

}  // namespace autograph

// Which node of one graph is which node of another.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Pairs of nodes, no node in two of them, and of the values that stand for each other with them.
class NodePairs {
 public:
  NodePairs(const Graph& a, const Graph& b);
  void add(NodeId a, NodeId b);
  /// The node of B for one of A, and the other way round; invalid where there is none.
  NodeId of_a(NodeId a) const { return of_a_[a.index]; }
  NodeId of_b(NodeId b) const { return of_b_[b.index]; }
  /// The value of B for one of A: inputs and states by name, inputs of other names by place; constants by name, else by
  /// elements. Invalid where there is none.
  ValueId counterpart(ValueId a) const;
  size_t size() const { return size_; }

 private:
  void match_values();
  const Graph& a_;
  const Graph& b_;
  std::vector<NodeId> of_a_, of_b_;
  std::map<ValueId, ValueId> given_;  // inputs, states and constants
  size_t size_ = 0;
};

/// The surest pairs first; see diff_graphs().
NodePairs match_nodes(const Graph& a, const Graph& b);

}  // namespace autograph

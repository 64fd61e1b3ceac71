// Which nodes of a graph depend on which, for rules that ask about many pairs: most are told at once, by the places of
// both in orders that every path keeps to, or by a chain that both are on. What is left is walked through between them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Of a graph as it is now. Takes time and memory in proportion to the graph. For one thread.
class Ancestry {
 public:
  explicit Ancestry(const Graph& graph);

  /// Was the node there? What was added since is not known here.
  bool knows(NodeId node) const { return node.index < places_.size() && places_[node.index].is_known; }
  /// Does a path lead from one node that is known to another? Yes, too, where telling would take looking at more than a
  /// fixed number of nodes.
  bool may_lead(NodeId from, NodeId to) const;
  /// How many nodes all walks together have looked at.
  size_t num_walked() const { return num_walked_; }

 private:
  // Paths lead to nodes with larger numbers alone, in all three: the length of the longest way there, and the ranks in
  // two orders that take branches from either end, so that nodes side by side stand either way round.
  struct Place {
    uint32_t level = 0;
    uint32_t rank = 0;
    uint32_t mirrored_rank = 0;
    uint32_t chain = 0;  // a path of which it is a part, and where
    uint32_t at = 0;
    bool is_known = false;
  };

  std::span<const uint32_t> successors(uint32_t node) const {
    return std::span(successors_).subspan(begins_[node], begins_[node + 1] - begins_[node]);
  }
  void find_successors(const Graph& graph);
  std::vector<uint32_t> depth_first_order(std::span<const uint32_t> roots, bool is_mirrored) const;
  void find_levels_and_chains(std::span<const uint32_t> order);
  bool precedes(const Place& a, const Place& b) const {
    return a.level < b.level && a.rank < b.rank && a.mirrored_rank < b.mirrored_rank;
  }
  bool walk(uint32_t from, uint32_t to) const;

  std::vector<uint32_t> begins_;         // by node, into successors_
  std::vector<uint32_t> successors_;     // of all nodes
  std::vector<Place> places_;            // by node
  mutable std::vector<uint32_t> marks_;  // by node: the last walk that came there
  mutable uint32_t walk_ = 0;
  mutable size_t num_walked_ = 0;
};

/// While one stands, ancestry_of() tells of this graph to whoever asks in this thread. The graph must not lose a path
/// between nodes that it had, nor get one, unless it is as it was when the next one asks: rules that add to it and take
/// it back do no harm.
class AncestryScope {
 public:
  explicit AncestryScope(const Graph& graph);
  ~AncestryScope();
  AncestryScope(const AncestryScope&) = delete;
  AncestryScope& operator=(const AncestryScope&) = delete;

  /// How many nodes walks have looked at.
  size_t num_walked() const { return ancestry_ ? ancestry_->num_walked() : 0; }

 private:
  friend const Ancestry* ancestry_of(const Graph& graph);

  const Graph& graph_;
  std::optional<Ancestry> ancestry_;  // found when it is asked for
  AncestryScope* outer_;
};

/// Null outside any scope of this graph.
const Ancestry* ancestry_of(const Graph& graph);

}  // namespace autograph

// Decision trees laid out for walking: one array of nodes, the two branches of a node side by side, comparisons spelled
// as "greater than", leaves that lead to themselves.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "ops/ml/forest.h"

namespace autograph {

/// The trees of a tree_ensemble over rows of T, float or double. Rows reach the leaves that Forest names, whatever
/// their bits. Neighbouring trees that differ in nothing but what their leaves add are one tree whose leaves add it
/// all.
template <class T>
struct FlatForest {
  /// A row goes to node `next + 1` where its feature is greater than `split`, else to `next`. A leaf has its own number
  /// as `next` and +inf as `split`.
  struct Node {
    T split;
    uint32_t feature;
    int32_t next;
    bool operator==(const Node&) const = default;
  };
  /// What nodes ask instead of "greater than"; `set` is sorted.
  enum class Test : uint8_t { greater, differs, missing_from_set };
  struct OtherTest {
    Test test = Test::greater;
    std::vector<double> set;
    bool operator==(const OtherTest&) const = default;
  };
  /// What a leaf adds to one target.
  struct Vote {
    double weight;
    int64_t target;
  };
  struct Tree {
    int32_t root;
    int32_t votes;  ///< Of each leaf.
  };

  static constexpr int kRowLanes = 8;
  /// More than registers hold: the trees of one row are read from farther away than those of many rows.
  static constexpr int kTreeLanes = 16;

  std::vector<Node> nodes;
  std::vector<Tree> trees;
  std::vector<int32_t> first_vote;  ///< By node; of leaves.
  std::vector<Vote> votes;
  std::vector<uint8_t> nan_goes_second;  ///< By node: 1 where a NaN goes to next + 1.
  std::vector<OtherTest> tests;          ///< By node; empty where all nodes ask "greater than".

  /// Takes kRowLanes walks at once, from the nodes `at` to the leaves that `rows` reach: a single one would spend its
  /// time waiting for memory and comparisons. `has_nan`: may some row have a NaN?
  void walk(const std::array<const T*, kRowLanes>& rows, bool has_nan, int32_t* at) const;
  /// The same for one row from kTreeLanes nodes.
  void walk(const T* row, bool has_nan, int32_t* at) const;
  const Vote* votes_of(int32_t leaf) const {
    return &votes[static_cast<size_t>(first_vote[static_cast<size_t>(leaf)])];
  }
  size_t bytes() const { return nodes.size() * sizeof(Node) + votes.size() * sizeof(Vote) + 4 * first_vote.size(); }

 private:
  template <int kLanes, class RowOf>
  void walk_lanes(const RowOf& row_of, bool has_nan, int32_t* at) const;
  bool goes_second(size_t node, T feature) const;
};

/// Lays trees out; nothing where branches meet again or go round in circles, so that trees of theirs would be many
/// times as large as their nodes.
template <class T>
std::optional<FlatForest<T>> lay_out(const Forest& forest);

}  // namespace autograph

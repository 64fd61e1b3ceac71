#include "backends/cpu/ml/flat_forest.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace autograph {
namespace {

using namespace trees;

// The greatest T that is not above `value`, which is no NaN.
template <class T>
T round_down(double value) {
  const T nearest = static_cast<T>(value);
  return static_cast<double>(nearest) > value ? std::nextafter(nearest, -std::numeric_limits<T>::infinity()) : nearest;
}

// x >= value where x > below(value), but for -inf, which nothing is below.
template <class T>
T below(double value) {
  const T down = round_down<T>(value);
  if (static_cast<double>(down) < value) return down;
  return std::nextafter(down, -std::numeric_limits<T>::infinity());
}

template <class T>
class Layout {
 public:
  explicit Layout(const Forest& forest)
      : forest_(forest),
        max_nodes_(
            std::min<size_t>(4 * (forest.modes.size() + forest.weights.size() + forest.roots.size()), 1u << 30)) {}

  std::optional<FlatForest<T>> build() {
    for (const int64_t root : forest_.roots) {
      if (!add_tree(static_cast<size_t>(root))) return std::nullopt;
      merge_last_trees();
    }
    const auto plain = [](const auto& other) { return other.test == Test::greater; };
    if (std::all_of(flat_.tests.begin(), flat_.tests.end(), plain)) flat_.tests.clear();
    return std::move(flat_);
  }

 private:
  using Node = typename FlatForest<T>::Node;
  using Test = typename FlatForest<T>::Test;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();

  // A node or leaf of the attributes.
  struct Branch {
    size_t index;
    bool is_leaf;
  };
  // What a node does, and which of its branches comes first.
  struct Step {
    T split = kInfinity;
    Test test = Test::greater;
    bool true_first = true;
  };

  bool add_tree(size_t root) {
    const size_t begin = flat_.nodes.size();
    std::vector<Branch> sources{{root, false}};
    for (size_t i = 0; i < sources.size(); ++i) {
      if (begin + sources.size() + 2 > max_nodes_) return false;
      const auto [index, is_leaf] = sources[i];
      if (is_leaf) {
        add_leaf(index);
        continue;
      }
      const Branch on_true{static_cast<size_t>(forest_.true_ids[index]), forest_.true_leafs[index] != 0};
      const Branch on_false{static_cast<size_t>(forest_.false_ids[index]), forest_.false_leafs[index] != 0};
      const bool true_first = add_node(index, begin + sources.size());
      sources.push_back(true_first ? on_true : on_false);
      sources.push_back(true_first ? on_false : on_true);
    }
    flat_.trees.push_back({static_cast<int32_t>(begin), 1});
    return true;
  }

  void add_leaf(size_t leaf) {
    flat_.nodes.push_back({kInfinity, 0, static_cast<int32_t>(flat_.nodes.size())});
    flat_.nan_goes_second.push_back(0);
    flat_.tests.push_back({});
    flat_.first_vote.push_back(static_cast<int32_t>(flat_.votes.size()));
    flat_.votes.push_back({forest_.weights[leaf], forest_.targets[leaf]});
  }

  // Returns whether the branch taken where the comparison holds comes first.
  bool add_node(size_t node, size_t next) {
    const Step step = step_of(node);
    const bool nan_goes_second = forest_.missing_takes_true(node) != step.true_first;
    const auto feature = static_cast<uint32_t>(forest_.features[node]);
    flat_.nodes.push_back({step.split, feature, static_cast<int32_t>(next)});
    flat_.nan_goes_second.push_back(nan_goes_second ? 1 : 0);
    flat_.tests.push_back({step.test, {}});
    if (step.test == Test::missing_from_set) {
      flat_.tests.back().set = forest_.sets[node];
      std::sort(flat_.tests.back().set.begin(), flat_.tests.back().set.end());
    }
    flat_.first_vote.push_back(-1);
    return step.true_first;
  }

  Step step_of(size_t node) const {
    const double split = forest_.splits[node];
    const int64_t mode = forest_.modes[node];
    if (mode == kMember) return {.test = Test::missing_from_set};
    if (std::isnan(split)) return {.true_first = mode == kNeq};
    if (mode == kEq || mode == kNeq) {
      const bool can_equal = static_cast<double>(static_cast<T>(split)) == split;
      if (!can_equal) return {.true_first = mode == kNeq};
      return {static_cast<T>(split), Test::differs, mode == kEq};
    }
    if (mode == kLeq || mode == kGt) return {round_down<T>(split), Test::greater, mode == kLeq};
    if (std::isinf(split) && split < 0) return {.true_first = mode == kGte};
    return {below<T>(split), Test::greater, mode == kLt};
  }

  bool are_alike(const typename FlatForest<T>::Tree& a, const typename FlatForest<T>::Tree& b) const {
    const size_t size = flat_.nodes.size() - static_cast<size_t>(b.root);
    if (static_cast<size_t>(b.root - a.root) != size) return false;
    for (size_t i = 0; i < size; ++i) {
      const size_t mine = static_cast<size_t>(a.root) + i, other = static_cast<size_t>(b.root) + i;
      Node moved = flat_.nodes[other];
      moved.next -= b.root - a.root;
      if (!(flat_.nodes[mine] == moved) || flat_.nan_goes_second[mine] != flat_.nan_goes_second[other] ||
          !(flat_.tests[mine] == flat_.tests[other])) {
        return false;
      }
    }
    return true;
  }

  // A tree with weights for several targets comes as one tree for each of them.
  void merge_last_trees() {
    if (flat_.trees.size() < 2) return;
    auto& tree = flat_.trees[flat_.trees.size() - 2];
    const auto last = flat_.trees.back();
    if (!are_alike(tree, last)) return;
    std::vector<typename FlatForest<T>::Vote> votes;
    const auto first = static_cast<size_t>(flat_.first_vote[first_leaf(tree.root)]);
    for (size_t node = static_cast<size_t>(tree.root); node < static_cast<size_t>(last.root); ++node) {
      if (flat_.first_vote[node] < 0) continue;
      const auto* own = flat_.votes_of(static_cast<int32_t>(node));
      const auto* added = flat_.votes_of(static_cast<int32_t>(node) + last.root - tree.root);
      flat_.first_vote[node] = static_cast<int32_t>(first + votes.size());
      votes.insert(votes.end(), own, own + tree.votes);
      votes.push_back(*added);
    }
    flat_.votes.resize(first);
    flat_.votes.insert(flat_.votes.end(), votes.begin(), votes.end());
    drop_nodes(static_cast<size_t>(last.root));
    ++tree.votes;
    flat_.trees.pop_back();
  }

  size_t first_leaf(int32_t root) const {
    auto node = static_cast<size_t>(root);
    while (flat_.first_vote[node] < 0) ++node;
    return node;
  }

  void drop_nodes(size_t begin) {
    flat_.nodes.resize(begin);
    flat_.nan_goes_second.resize(begin);
    flat_.tests.resize(begin);
    flat_.first_vote.resize(begin);
  }

  const Forest& forest_;
  const size_t max_nodes_;
  FlatForest<T> flat_;
};

}  // namespace

template <class T>
bool FlatForest<T>::goes_second(size_t node, T feature) const {
  if (std::isnan(feature)) return nan_goes_second[node] != 0;
  switch (tests[node].test) {
    case Test::greater: return feature > nodes[node].split;
    case Test::differs: return feature != nodes[node].split;
    case Test::missing_from_set: break;
  }
  const std::vector<double>& set = tests[node].set;
  return !std::binary_search(set.begin(), set.end(), static_cast<double>(feature));
}

// Two steps of every lane at a time, until none moves in the second of them.
template <int kLanes, class Step>
inline __attribute__((always_inline)) void take_steps(int32_t* at, const Step& step) {
  int32_t now[kLanes];
  std::copy_n(at, kLanes, now);
  for (int32_t moved = 1; moved != 0;) {
    moved = 0;
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) now[lane] = step(now[lane], lane);
#pragma GCC unroll 16
    for (int lane = 0; lane < kLanes; ++lane) {
      const int32_t next = step(now[lane], lane);
      moved |= next ^ now[lane];
      now[lane] = next;
    }
  }
  std::copy_n(now, kLanes, at);
}

template <class T>
template <int kLanes, class RowOf>
void FlatForest<T>::walk_lanes(const RowOf& row_of, bool has_nan, int32_t* at) const {
  const Node* const all = nodes.data();
  if (!tests.empty()) {
    return take_steps<kLanes>(at, [&](int32_t from, int lane) {
      const Node& node = all[from];
      return node.next + static_cast<int32_t>(goes_second(static_cast<size_t>(from), row_of(lane)[node.feature]));
    });
  }
  if (has_nan) {
    const uint8_t* const nans = nan_goes_second.data();
    return take_steps<kLanes>(at, [&](int32_t from, int lane) {
      const Node& node = all[from];
      const T feature = row_of(lane)[node.feature];
      return node.next + (static_cast<int32_t>(feature > node.split) |
                          (static_cast<int32_t>(std::isnan(feature)) & static_cast<int32_t>(nans[from])));
    });
  }
  take_steps<kLanes>(at, [&](int32_t from, int lane) {
    const Node& node = all[from];
    return node.next + static_cast<int32_t>(row_of(lane)[node.feature] > node.split);
  });
}

template <class T>
void FlatForest<T>::walk(const std::array<const T*, kRowLanes>& rows, bool has_nan, int32_t* at) const {
  walk_lanes<kRowLanes>([&](int lane) { return rows[static_cast<size_t>(lane)]; }, has_nan, at);
}

template <class T>
void FlatForest<T>::walk(const T* row, bool has_nan, int32_t* at) const {
  walk_lanes<kTreeLanes>([row](int) { return row; }, has_nan, at);
}

template struct FlatForest<float>;
template struct FlatForest<double>;

template <class T>
std::optional<FlatForest<T>> lay_out(const Forest& forest) {
  return Layout<T>(forest).build();
}

template std::optional<FlatForest<float>> lay_out(const Forest& forest);
template std::optional<FlatForest<double>> lay_out(const Forest& forest);

}  // namespace autograph

// tree_ensemble over trees that are laid out once, when the kernel is prepared. Several walks run side by side:
// rows through one tree, so that its nodes are read once, or one row through several trees. Scores are added up in f64
// in the order of the trees, whoever walks them: the numbers are those of the reference, bit by bit.
#include <algorithm>
#include <array>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/ml/flat_forest.h"
#include "backends/cpu/threads/parallel.h"
#include "base/aligned_size.h"
#include "ops/defs.h"

namespace autograph {
namespace {

using namespace trees;

// What a walk through a tree costs, in the unit of kMinWorkPerThread.
constexpr int64_t kWorkPerWalk = 64;

// The scores of a row while they are summed, and which of them some leaf touched.
struct Scores {
  double* values;
  uint8_t* touched;
  int64_t count;

  static size_t bytes(int64_t count) { return aligned_size(static_cast<size_t>(count) * (sizeof(double) + 1)); }
  static Scores at(std::byte* memory, int64_t count) {
    return {reinterpret_cast<double*>(memory), reinterpret_cast<uint8_t*>(memory) + count * int64_t{sizeof(double)},
            count};
  }

  void clear() const {
    std::fill_n(values, count, 0.0);
    std::fill_n(touched, count, uint8_t{0});
  }

  void add(double weight, int64_t target, int64_t function) const {
    double& score = values[target];
    if (function == kAverage || function == kSum) {
      score += weight;
      return;
    }
    if (touched[target] == 0)
      score = weight;
    else
      score = function == kMin ? std::min(score, weight) : std::max(score, weight);
    touched[target] = 1;
  }
};

template <class T>
bool has_nan(const T* values, int64_t count) {
  int64_t nans = 0;
#pragma omp simd reduction(+ : nans)
  for (int64_t i = 0; i < count; ++i) nans += values[i] != values[i] ? 1 : 0;
  return nans != 0;
}

template <class T>
class TreeEnsembleKernel : public Kernel {
 public:
  TreeEnsembleKernel(const KernelCall& call, FlatForest<T> forest)
      : forest_(std::move(forest)),
        function_(call.attributes.integer("aggregate_function")),
        transform_(call.attributes.integer("post_transform")),
        num_roots_(static_cast<int64_t>(call.attributes.integers("tree_roots").size())),
        rows_(call.input_dims(0)[0]),
        features_(call.input_dims(0)[1]),
        targets_(call.output_dims(0)[1]),
        num_trees_(static_cast<int64_t>(forest_.trees.size())),
        threads_(useful_threads(call.threads, rows_ * num_trees_ * kWorkPerWalk)),
        shares_rows_(threads_ == 1 || rows_ >= int64_t{kLanes} * threads_) {}

  size_t weight_bytes() const override { return forest_.bytes(); }

  size_t scratch_bytes() const override {
    return shares_rows_ ? static_cast<size_t>(threads_) * share_bytes()
                        : Scores::bytes(targets_) + static_cast<size_t>(rows_) * leaf_bytes();
  }

  void run(const KernelArgs& args) const override {
    const T* x = args.inputs[0].data<T>();
    T* y = args.outputs[0].mutable_data<T>();
    auto* scratch = static_cast<std::byte*>(args.scratch);
    if (!shares_rows_) return share_trees(x, y, scratch);
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int thread) {
      std::byte* own = scratch + static_cast<size_t>(thread) * share_bytes();
      int64_t row = begin;
      for (; row + kLanes <= end; row += kLanes) run_rows(x + row * features_, y + row * targets_, own);
      for (; row < end; ++row) {
        auto* leaves = reinterpret_cast<int32_t*>(own + Scores::bytes(targets_));
        walk_trees(x + row * features_, 0, num_trees_, leaves);
        add_leaves(leaves, Scores::at(own, targets_), y + row * targets_);
      }
    });
  }

 private:
  static constexpr int kLanes = FlatForest<T>::kRowLanes;
  static constexpr int kTreeLanes = FlatForest<T>::kTreeLanes;

  size_t leaf_bytes() const { return aligned_size(static_cast<size_t>(num_trees_) * sizeof(int32_t)); }
  size_t share_bytes() const {
    return std::max(kLanes * Scores::bytes(targets_), Scores::bytes(targets_) + leaf_bytes());
  }

  // Few rows: threads walk through trees of their own, and one adds up what they found.
  void share_trees(const T* x, T* y, std::byte* scratch) const {
    std::byte* const leaves = scratch + Scores::bytes(targets_);
    const auto leaves_of = [&](int64_t row) {
      return reinterpret_cast<int32_t*>(leaves + static_cast<size_t>(row) * leaf_bytes());
    };
    for_shares(threads_, num_trees_, [&](int64_t begin, int64_t end, int) {
      for (int64_t row = 0; row < rows_; ++row) walk_trees(x + row * features_, begin, end, leaves_of(row));
    });
    for (int64_t row = 0; row < rows_; ++row) {
      add_leaves(leaves_of(row), Scores::at(scratch, targets_), y + row * targets_);
    }
  }

  // The leaves that one row reaches in the trees [begin, end).
  void walk_trees(const T* row, int64_t begin, int64_t end, int32_t* leaves) const {
    const bool with_nan = has_nan(row, features_);
    for (int64_t tree = begin; tree < end; tree += kTreeLanes) {
      int32_t at[kTreeLanes];
      for (int64_t lane = 0; lane < kTreeLanes; ++lane) at[lane] = tree_at(std::min(tree + lane, end - 1)).root;
      forest_.walk(row, with_nan, at);
      std::copy_n(at, std::min<int64_t>(kTreeLanes, end - tree), leaves + tree);
    }
  }

  void add_leaves(const int32_t* leaves, const Scores& scores, T* y) const {
    scores.clear();
    for (int64_t tree = 0; tree < num_trees_; ++tree) add_votes(leaves[tree], tree_at(tree).votes, scores);
    finish(scores, y);
  }

  // kLanes rows through one tree after the other.
  void run_rows(const T* x, T* y, std::byte* memory) const {
    const bool with_nan = has_nan(x, kLanes * features_);
    std::array<const T*, kLanes> rows;
    Scores scores[kLanes];
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      rows[static_cast<size_t>(lane)] = x + lane * features_;
      scores[lane] = Scores::at(memory + static_cast<size_t>(lane) * Scores::bytes(targets_), targets_);
      scores[lane].clear();
    }
    for (const auto& tree : forest_.trees) {
      int32_t at[kLanes];
      std::fill_n(at, kLanes, tree.root);
      forest_.walk(rows, with_nan, at);
      for (int lane = 0; lane < kLanes; ++lane) add_votes(at[lane], tree.votes, scores[lane]);
    }
    for (int64_t lane = 0; lane < kLanes; ++lane) finish(scores[lane], y + lane * targets_);
  }

  void add_votes(int32_t leaf, int32_t count, const Scores& scores) const {
    const auto* votes = forest_.votes_of(leaf);
    for (int32_t i = 0; i < count; ++i) scores.add(votes[i].weight, votes[i].target, function_);
  }

  void finish(const Scores& scores, T* y) const {
    if (function_ == kAverage) {
      for (int64_t i = 0; i < targets_; ++i) scores.values[i] /= static_cast<double>(num_roots_);
    }
    transform_scores({scores.values, static_cast<size_t>(targets_)}, transform_);
    for (int64_t i = 0; i < targets_; ++i) y[i] = static_cast<T>(scores.values[i]);
  }

  const auto& tree_at(int64_t tree) const { return forest_.trees[static_cast<size_t>(tree)]; }

  const FlatForest<T> forest_;
  const int64_t function_, transform_;
  const int64_t num_roots_;  // of the op: fewer trees where some were merged
  const int64_t rows_, features_, targets_, num_trees_;
  const int threads_;
  const bool shares_rows_;
};

std::string why_not(const KernelCall& call) { return call.inputs[0].dtype() == DType::f16 ? "features of f16" : ""; }

template <class T>
Prepared prepare_for(const KernelCall& call) {
  std::optional<FlatForest<T>> forest = lay_out<T>(Forest(call.attributes));
  if (!forest) return {nullptr, "branches that meet again or go round in circles"};
  return {std::make_unique<TreeEnsembleKernel<T>>(call, *std::move(forest)), ""};
}

Prepared prepare(const KernelCall& call) {
  return call.inputs[0].dtype() == DType::f32 ? prepare_for<float>(call) : prepare_for<double>(call);
}

}  // namespace

KernelDef tree_ensemble_kernel() {
  return {.name = "cpu.tree_ensemble", .op = tree_ensemble_def().name, .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph

// tree_ensemble on the CPU against the reference: the same numbers, bit by bit.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/ml/flat_forest.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

using Integers = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kFeatures = 5;

// What features and splits are drawn from, so that they meet; 0.1 is not an f32, nor is 1e300.
double draw_number(Random& random) {
  const std::vector<double> numbers{-1, -0.0, 0, 0.1, 0.5, 1, 1e300, -1e300, 1e-40, kInf, -kInf, kNan};
  return numbers[static_cast<size_t>(draw(random, 0, static_cast<int64_t>(numbers.size()) - 1))];
}

// Attributes in the making.
struct Trees {
  Integers roots, features, true_ids, true_leafs, false_ids, false_leafs, targets, missing;
  std::vector<uint8_t> modes;
  std::vector<double> splits, weights, members;

  int64_t add_leaf(int64_t target, double weight) {
    targets.push_back(target);
    weights.push_back(weight);
    return static_cast<int64_t>(weights.size()) - 1;
  }

  int64_t add_node(int64_t feature, int64_t mode, double split, bool missing_true) {
    features.push_back(feature);
    modes.push_back(static_cast<uint8_t>(mode));
    splits.push_back(split);
    missing.push_back(missing_true ? 1 : 0);
    for (Integers* list : {&true_ids, &true_leafs, &false_ids, &false_leafs}) list->push_back(0);
    if (mode == 6) members.insert(members.end(), {0.5, -1, static_cast<double>(feature), kNan});
    return static_cast<int64_t>(modes.size()) - 1;
  }

  void set_branches(int64_t node, int64_t on_true, bool true_leaf, int64_t on_false, bool false_leaf) {
    const auto at = static_cast<size_t>(node);
    true_ids[at] = on_true;
    true_leafs[at] = true_leaf ? 1 : 0;
    false_ids[at] = on_false;
    false_leafs[at] = false_leaf ? 1 : 0;
  }

  Attributes attributes(int64_t num_targets, int64_t aggregate, int64_t transform) const {
    const auto nodes = static_cast<int64_t>(modes.size());
    Attributes result{{"n_targets", num_targets},
                      {"aggregate_function", aggregate},
                      {"post_transform", transform},
                      {"tree_roots", roots},
                      {"nodes_featureids", features},
                      {"nodes_modes", Tensor::of<uint8_t>({nodes}, modes)},
                      {"nodes_splits", Tensor::of<double>({nodes}, splits)},
                      {"nodes_truenodeids", true_ids},
                      {"nodes_trueleafs", true_leafs},
                      {"nodes_falsenodeids", false_ids},
                      {"nodes_falseleafs", false_leafs},
                      {"nodes_missing_value_tracks_true", missing},
                      {"leaf_targetids", targets},
                      {"leaf_weights", Tensor::of<double>({static_cast<int64_t>(weights.size())}, weights)}};
    if (!members.empty()) {
      result.set("membership_values", Tensor::of<double>({static_cast<int64_t>(members.size())}, members));
    }
    return result;
  }
};

// A random tree over modes up to `last_mode`; `target` -1: each leaf has its own.
int64_t add_tree(Random& random, Trees& trees, int64_t depth, int64_t last_mode, int64_t num_targets, int64_t target) {
  const int64_t node = trees.add_node(draw(random, 0, kFeatures - 1), draw(random, 0, last_mode), draw_number(random),
                                      draw_bool(random));
  Integers ids;
  std::vector<bool> leafs;
  for (int side = 0; side < 2; ++side) {
    leafs.push_back(depth == 0 || draw(random, 0, 3) == 0);
    const int64_t own = target < 0 ? draw(random, 0, num_targets - 1) : target;
    ids.push_back(leafs.back() ? trees.add_leaf(own, static_cast<double>(7 * own + draw(random, -50, 50)) / 7)
                               : add_tree(random, trees, depth - 1, last_mode, num_targets, target));
  }
  trees.set_branches(node, ids[0], leafs[0], ids[1], leafs[1]);
  return node;
}

Tensor draw_rows(Random& random, DType dtype, int64_t rows) {
  std::vector<double> values;
  for (int64_t i = 0; i < rows * kFeatures; ++i) values.push_back(draw_number(random));
  if (dtype == DType::f64) return Tensor::of<double>({rows, kFeatures}, values);
  return Tensor::of<float>({rows, kFeatures}, std::vector<float>(values.begin(), values.end()));
}

void expect_reference(const OpSample& sample) {
  for (const int threads : {1, 3}) {
    const KernelCase test(tree_ensemble_def(), sample, {threads, false});
    KernelRun run(tree_ensemble_kernel(), test);
    ASSERT_EQ(run.refusal(), "");
    for (int again = 0; again < 2; ++again) {
      run.run();
      EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {0, 0}), "") << threads << " threads";
    }
  }
}

TEST(TreeEnsembleKernel, ReachesTheLeavesOfTheReference) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const int64_t last_mode = round % 2 == 0 ? 3 : 6;
    const int64_t num_targets = draw(random, 1, 4);
    Trees trees;
    for (int64_t tree = draw(random, 1, 40); tree > 0; --tree) {
      trees.roots.push_back(add_tree(random, trees, draw(random, 0, 6), last_mode, num_targets, -1));
    }
    const Attributes attributes = trees.attributes(num_targets, round / 2 % 4, round / 8 % 5);
    for (const DType dtype : {DType::f32, DType::f64}) {
      for (const int64_t rows : {1, 3, 37}) expect_reference({{draw_rows(random, dtype, rows)}, attributes});
    }
  }
}

// Enough of them that threads share the rows, or the trees of few rows.
TEST(TreeEnsembleKernel, ThreadsShareRowsOrTrees) {
  Random random(2);
  Trees trees;
  for (int tree = 0; tree < 900; ++tree) trees.roots.push_back(add_tree(random, trees, 4, 0, 3, tree % 3));
  for (const int64_t aggregate : {0, 1, 2, 3}) {
    for (const int64_t rows : {2, 5, 43}) {
      expect_reference({{draw_rows(random, DType::f64, rows)}, trees.attributes(3, aggregate, 0)});
    }
  }
}

TEST(TreeEnsembleKernel, CopiesOfATreeForSeveralTargetsAreWalkedOnce) {
  Random random(3);
  for (const int64_t last_mode : {3, 6}) {
    Trees trees;
    for (uint64_t tree = 0; tree < 5; ++tree) {
      for (int64_t target = 0; target < 3; ++target) {
        Random same(100 + tree);
        trees.roots.push_back(add_tree(same, trees, 5, last_mode, 3, target));
      }
    }
    const Attributes attributes = trees.attributes(3, 1, 1);
    EXPECT_EQ(lay_out<float>(Forest(attributes))->trees.size(), 5u);
    expect_reference({{draw_rows(random, DType::f32, 37)}, attributes});
  }
}

TEST(TreeEnsembleKernel, LeavesBranchesThatMeetAgainToTheReference) {
  Random random(4);
  Trees trees;
  for (int64_t node = 0; node < 20; ++node) {  // both branches lead to the next node: 2^20 paths
    trees.add_node(0, 0, 0, false);
    trees.set_branches(node, node + 1, false, node + 1, false);
  }
  const int64_t leaf = trees.add_leaf(0, 1);
  trees.set_branches(19, leaf, true, leaf, true);
  trees.roots.push_back(0);
  const KernelCase test(tree_ensemble_def(), {{draw_rows(random, DType::f32, 2)}, trees.attributes(1, 1, 0)});
  EXPECT_EQ(KernelRun(tree_ensemble_kernel(), test).refusal(), "branches that meet again or go round in circles");
}

}  // namespace
}  // namespace autograph

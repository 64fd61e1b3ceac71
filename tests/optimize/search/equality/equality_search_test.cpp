// Searching by an equality graph: rewrites that pay together are found with few graphs looked at, what is found
// computes the same and is made by rules, and the search ends by itself, when told to, and the same every time.
#include "optimize/search/equality/equality_search.h"

#include <gtest/gtest.h>

#include <set>

#include "autograph/compare_values.h"
#include "autograph/ops/random.h"
#include "autograph/random.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "optimize/search/search_testing.h"
#include "support/moved_runs.h"

namespace autograph {
namespace {

// Layers that each have three products of one product: merging these costs, and pays with regrouping behind it.
Graph projected_layers(int count) {
  Graph graph("projected");
  const auto weight = [&] { return constant(graph, Tensor::zeros(DType::f32, {64, 64})); };
  Var x = input(graph, DType::f32, {128, 64}, "x");
  for (int layer = 0; layer < count; ++layer) {
    const Var h = matmul(x, weight());
    x = add(mul(sigmoid(matmul(h, weight())), tanh(matmul(h, weight()))), relu(matmul(h, weight())));
  }
  graph.add_output(x.id(), "y");
  return graph;
}

// Moving is cheap beside computing, as on devices.
class ComputeCost : public PlainCost {
 public:
  double node_us(const Graph& graph, NodeId id, int threads) override {
    const bool computes = graph.node(id).op().traits.anchor;
    const double us = PlainCost::node_us(graph, id, threads);
    return computes || us == 0 ? us : 1 + 0.15 * us;
  }
};

// Sums and products of values and weights in any order, so that many rules apply.
Graph random_arithmetic(Random& random, int num_nodes) {
  Graph graph("arithmetic");
  std::vector<Var> values = {input(graph, DType::f32, {8, 8}, "a"), input(graph, DType::f32, {8, 8}, "b")};
  for (int weight = 0; weight < 2; ++weight) {
    std::vector<float> elements(64);
    for (float& element : elements) element = static_cast<float>(random() % 1000) / 1000 - 0.5F;
    values.push_back(constant(graph, Tensor::of<float>({8, 8}, elements)));
  }
  const auto any = [&] { return values[random() % values.size()]; };
  for (int node = 0; node < num_nodes; ++node) {
    const Var x = any();
    switch (random() % 5) {
      case 0: values.push_back(add(x, any())); break;
      case 1: values.push_back(sub(x, any())); break;
      case 2: values.push_back(mul(x, any())); break;
      case 3: values.push_back(sigmoid(x)); break;
      default: values.push_back(matmul(x, any())); break;
    }
  }
  graph.add_output(values.back().id(), "y");
  graph.add_output(values[values.size() - 2].id(), "z");
  graph.erase_dead();
  return graph;
}

class EqualitySearchTest : public testing::Test {
 protected:
  // Stops after so many graphs.
  BacktrackingOptions limited(size_t graphs) {
    looked_at_ = 0;
    BacktrackingOptions options;
    options.on_candidate = [this](double) { ++looked_at_; };
    options.should_stop = [this, graphs] { return looked_at_ >= graphs; };
    return options;
  }
  static double best_us(const std::vector<Rewritten>& found) { return found.front().candidate->score().mixed_us(1); }

  PlainCost model_;
  FusedCost cost_{model_};
  std::vector<const Rule*> rules_ = every_rule();
  RuleMatcher matcher_{rules_};
  size_t looked_at_ = 0;
};

TEST_F(EqualitySearchTest, FindsWhatPaysTogetherWithFewerGraphsThanBacktracking) {
  ComputeCost model;
  FusedCost cost(model);
  const CandidateGraph start(projected_layers(3), cost);
  BacktrackingOptions few = limited(200);
  few.slack_us = 0.25 * start.score().mixed_us(1);
  const double by_backtracking = best_us(backtrack(start, matcher_, few));
  const double by_equalities = best_us(search_equalities(start, matcher_, limited(200)));
  EXPECT_LT(by_equalities, 0.995 * by_backtracking);
}

TEST_F(EqualitySearchTest, IsNoWorseThanBacktrackingThatTriesTenTimesAsMuch) {
  for (const int blocks : {1, 2, 3}) {
    const CandidateGraph start(gated_blocks(blocks), cost_);
    const double by_equalities = best_us(search_equalities(start, matcher_, limited(300)));
    EXPECT_LE(by_equalities, best_us(backtrack(start, matcher_, limited(3000))) * (1 + 1e-9)) << blocks;
  }
}

TEST_F(EqualitySearchTest, RandomGraphsComputeTheSame) {
  Random random(7);
  size_t rewritten = 0;
  for (int round = 0; round < 60; ++round) {
    const Graph graph = random_arithmetic(random, 10);
    const CandidateGraph start(graph, cost_);
    const std::vector<Datum> inputs = seeded_inputs(graph);
    const std::vector<Datum> expected = run_reference(graph, inputs);
    for (const Rewritten& found : search_equalities(start, matcher_, limited(150))) {
      rewritten += found.steps.empty() ? 0 : 1;
      verify(found.candidate->graph());
      const Difference difference = compare_all(run_reference(found.candidate->graph(), inputs), expected, {});
      EXPECT_TRUE(difference.ok) << round << ": " << difference.why;
    }
  }
  EXPECT_GT(rewritten, 100U);
}

TEST_F(EqualitySearchTest, ResultsAreSortedDifferAndHaveTheStart) {
  const CandidateGraph start(gated_blocks(2), cost_);
  const std::vector<Rewritten> found = search_equalities(start, matcher_, limited(300));
  ASSERT_GE(found.size(), 3U);
  std::set<Hash128> hashes;
  for (size_t i = 0; i < found.size(); ++i) {
    hashes.insert(found[i].candidate->score().hash);
    if (i == 0) continue;
    EXPECT_LE(found[i - 1].candidate->score().mixed_us(1), found[i].candidate->score().mixed_us(1));
  }
  EXPECT_EQ(hashes.size(), found.size());
  EXPECT_TRUE(hashes.contains(start.score().hash));
}

// What is found for a part is applied to all that are equal to it.
TEST_F(EqualitySearchTest, StepsApplyAgain) {
  const CandidateGraph start(gated_blocks(2), cost_);
  for (const Rewritten& found : search_equalities(start, matcher_, limited(300))) {
    const Replayed again = replay(start.graph(), matcher_, found.steps);
    EXPECT_EQ(again.steps.size(), found.steps.size());
    EXPECT_EQ(structural_hash(again.graph), structural_hash(found.candidate->graph()));
  }
}

TEST_F(EqualitySearchTest, RulesThatUndoEachOtherEnd) {
  std::vector<const Rule*> circle;
  for (const std::string_view name : {"matmul.regroup_right", "matmul.regroup_left", "matmul.factor_right",
                                      "matmul.distribute_right", "matmul.factor_left", "matmul.distribute_left"}) {
    circle.push_back(&get_rule(name));
  }
  const RuleMatcher matcher(circle);
  Graph graph("chain");
  const auto value = [&](const char* name) { return input(graph, DType::f32, {8, 8}, name); };
  const Var sum = add(matmul(value("a"), value("b")), matmul(value("c"), value("d")));
  graph.add_output(matmul(matmul(matmul(sum, value("e")), value("f")), value("g")).id(), "y");
  const CandidateGraph start(graph, cost_);
  BacktrackingOptions options = limited(100'000);
  const std::vector<Rewritten> found = search_equalities(start, matcher, options);
  EXPECT_GT(looked_at_, 10U);
  EXPECT_LT(looked_at_, 100'000U);
}

TEST_F(EqualitySearchTest, IsTheSameEveryTime) {
  const CandidateGraph start(projected_layers(3), cost_);
  const std::vector<Rewritten> first = search_equalities(start, matcher_, limited(200));
  const std::vector<Rewritten> second = search_equalities(start, matcher_, limited(200));
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(structural_hash(first[i].candidate->graph()), structural_hash(second[i].candidate->graph()));
  }
}

TEST_F(EqualitySearchTest, StopsWhenItIsTold) {
  const CandidateGraph start(gated_blocks(4), cost_);
  const std::vector<Rewritten> none = search_equalities(start, matcher_, limited(0));
  ASSERT_EQ(none.size(), 1U);
  EXPECT_TRUE(none.front().steps.empty());
  search_equalities(start, matcher_, limited(37));
  EXPECT_EQ(looked_at_, 37U);
}

TEST_F(EqualitySearchTest, GraphsThatDrawNumbersComeBackAsTheyAre) {
  Graph graph("noise");
  const Var x = input(graph, DType::f32, {4, 4}, "x");
  const Var noise = random_normal_like(x);
  graph.add_output(add(mul(noise, x), mul(noise, x)).id(), "y");
  const CandidateGraph start(graph, cost_);
  const std::vector<Rewritten> found = search_equalities(start, matcher_, limited(100));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(looked_at_, 0U);
}

}  // namespace
}  // namespace autograph

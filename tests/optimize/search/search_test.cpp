#include <gtest/gtest.h>

#include <set>

#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/partition.h"
#include "optimize/search/search_testing.h"
#include "optimize/search/stitch.h"
#include "support/graphs/random_graph.h"
#include "support/moved_runs.h"

namespace autograph {
namespace {

// Everything that a candidate keeps up to date, computed anew.
void expect_fresh(const CandidateGraph& candidate, FusedCost& cost) {
  const CandidateGraph fresh(candidate.graph(), cost);
  EXPECT_NEAR(candidate.score().sum_us, fresh.score().sum_us, 1e-9 * fresh.score().sum_us);
  EXPECT_NEAR(candidate.score().critical_us, fresh.score().critical_us, 1e-9 * fresh.score().critical_us);
  EXPECT_EQ(candidate.score().num_nodes, fresh.score().num_nodes);
}

void expect_same_numbers(const Graph& actual, const Graph& expected) {
  const std::vector<Datum> inputs = seeded_inputs(expected);
  const std::vector<Datum> a = run_reference(actual, inputs);
  const std::vector<Datum> b = run_reference(expected, inputs);
  ASSERT_EQ(a.size(), b.size());
  for (size_t k = 0; k < a.size(); ++k)
    EXPECT_TRUE(compare_values(a[k], b[k], {}).ok) << compare_values(a[k], b[k], {}).why;
}

class SearchTest : public testing::Test {
 protected:
  PlainCost model_;
  FusedCost cost_{model_};
  std::vector<const Rule*> rules_ = every_rule();
  RuleMatcher matcher_{rules_};
};

TEST_F(SearchTest, MatchesThatMayNotBeTriedAreLeftOut) {
  const CandidateGraph start(gated_blocks(2), cost_);
  BacktrackingOptions how;
  ASSERT_GT(backtrack(start, matcher_, how).front().steps.size(), 0U);
  how.may_try = [](const CandidateGraph&, const RuleMatch&) { return false; };
  EXPECT_TRUE(backtrack(start, matcher_, how).front().steps.empty());
}

TEST_F(SearchTest, TryingARuleTellsWhatApplyingItGives) {
  CandidateGraph candidate(gated_blocks(3), cost_);
  int applied = 0;
  for (int step = 0; step < 12; ++step) {
    const GraphScore before = candidate.score();
    const std::vector<RuleMatch> matches = matcher_.find_all(candidate.graph());
    if (matches.empty()) break;
    for (const RuleMatch& match : matches) {
      const auto told = candidate.try_rule(match);
      EXPECT_EQ(candidate.score().hash, before.hash);
      EXPECT_EQ(candidate.score().sum_us, before.sum_us);
      if (!told) continue;
      CandidateGraph copy = candidate;
      ASSERT_TRUE(copy.apply(match.in(candidate.graph())));
      EXPECT_NEAR(copy.score().sum_us, told->sum_us, 1e-9 * told->sum_us);
      EXPECT_NEAR(copy.score().critical_us, told->critical_us, 1e-9 * told->critical_us);
      EXPECT_EQ(copy.score().hash, told->hash);
      expect_fresh(copy, cost_);
    }
    applied += candidate.apply(matches[static_cast<size_t>(step * 7) % matches.size()]) ? 1 : 0;
    verify(candidate.graph());
  }
  EXPECT_GT(applied, 4);
}

TEST_F(SearchTest, EqualGraphsHaveEqualHashesWhateverTheOrderOfRewrites) {
  const CandidateGraph start(gated_blocks(2), cost_);
  const std::vector<RuleMatch> matches = matcher_.find_all(start.graph());
  int pairs = 0;
  for (size_t a = 0; a < matches.size(); ++a) {
    for (size_t b = a + 1; b < matches.size(); ++b) {
      CandidateGraph ab = start;
      CandidateGraph ba = start;
      const bool both = ab.apply(matches[a]) && ab.apply(matches[b]) && ba.apply(matches[b]) && ba.apply(matches[a]);
      if (!both || structural_hash(ab.graph()) != structural_hash(ba.graph())) continue;
      ++pairs;
      EXPECT_EQ(ab.score().hash, ba.score().hash) << matches[a].rule().name << ", " << matches[b].rule().name;
    }
  }
  EXPECT_GT(pairs, 0);
}

TEST_F(SearchTest, BacktrackingFindsTheFactoredGates) {
  const Graph graph = gated_blocks(1);
  const CandidateGraph start(graph, cost_);
  BacktrackingOptions options;
  options.max_popped = 50;
  const std::vector<Rewritten> found = backtrack(start, matcher_, options);
  ASSERT_GE(found.size(), 2u);
  EXPECT_LT(found[0].candidate->score().mixed_us(1), start.score().mixed_us(1));
  std::set<Hash128> hashes;
  for (const Rewritten& one : found) {
    hashes.insert(one.candidate->score().hash);
    verify(one.candidate->graph());
    expect_same_numbers(one.candidate->graph(), graph);
  }
  EXPECT_EQ(hashes.size(), found.size());
}

TEST_F(SearchTest, AlphaZeroLooksAtTheSumAlone) {
  const CandidateGraph start(gated_blocks(2), cost_);
  BacktrackingOptions options;
  options.alpha = 0;
  options.max_popped = 40;
  const std::vector<Rewritten> found = backtrack(start, matcher_, options);
  for (size_t i = 1; i < found.size(); ++i) {
    EXPECT_LE(found[i - 1].candidate->score().sum_us, found[i].candidate->score().sum_us);
  }
}

// Here: by the products of the graph, whatever they cost.
TEST_F(SearchTest, WholeGraphsAreRankedByWhatTheCallerSays) {
  const auto products = [](const Graph& graph) {
    double count = 0;
    for (const NodeId id : graph.nodes()) count += graph.node(id).op().traits.anchor && !is_weight_only(graph, id);
    return 1 + count;
  };
  const Graph graph = gated_blocks(3);
  BacktrackingOptions options;
  options.max_popped = 20;
  options.whole_us = [&](const CandidateGraph& candidate) { return products(candidate.graph()); };
  const std::vector<Rewritten> found = backtrack(CandidateGraph(graph, cost_), matcher_, options);
  EXPECT_EQ(products(found.front().candidate->graph()), 4) << "the two of each block are one";
  double gained = 0;
  for (const RewriteStep& step : found.front().steps) gained += step.gain_us;
  EXPECT_EQ(gained, 3) << "of the same";
  for (size_t i = 0; i < found.size(); ++i) {
    const Graph& rewritten = found[i].candidate->graph();
    verify(rewritten);
    expect_same_numbers(rewritten, graph);
    EXPECT_LE(products(found[i > 0 ? i - 1 : 0].candidate->graph()), products(rewritten));
  }
}

// Here: those of the last block.
TEST_F(SearchTest, OnlyMatchesOfChosenNodesAreTried) {
  const Graph graph = gated_blocks(3);
  const std::vector<NodeId> order = graph.topological_order();
  const NodeId first = order[2 * order.size() / 3];
  BacktrackingOptions options;
  options.max_popped = 1;
  options.choose_nodes = [&](const CandidateGraph& candidate, double) {
    std::vector<bool> chosen(candidate.graph().node_capacity(), false);
    for (auto id = std::find(order.begin(), order.end(), first); id != order.end(); ++id) chosen[id->index] = true;
    return chosen;
  };
  size_t num_steps = 0;
  for (const Rewritten& found : backtrack(CandidateGraph(graph, cost_), matcher_, options)) {
    num_steps += found.steps.size();
    for (const RewriteStep& step : found.steps) {
      EXPECT_TRUE(std::any_of(step.nodes.begin(), step.nodes.end(), [&](NodeId id) {
        return std::find(order.begin(), order.end(), id) >= std::find(order.begin(), order.end(), first);
      })) << step.where;
    }
  }
  EXPECT_GT(num_steps, 0u);
  options.choose_nodes = [](const CandidateGraph& candidate, double) {
    return std::vector<bool>(candidate.graph().node_capacity(), false);
  };
  const std::vector<Rewritten> none = backtrack(CandidateGraph(graph, cost_), matcher_, options);
  ASSERT_EQ(none.size(), 1u);
  EXPECT_TRUE(none.front().steps.empty());
}

// A step that costs more than gamma allows leads to one that gains: x v and x w become one product, which then meets
// the weight in front of it.
TEST_F(SearchTest, SlackLetsAStepPayLater) {
  Graph graph("projections");
  const auto weight = [&](int64_t rows, int64_t columns) {
    return constant(graph, Tensor::zeros(DType::f32, {rows, columns}));
  };
  const Var x = matmul(input(graph, DType::f32, {512, 256}, "x"), weight(256, 256));
  graph.add_output(matmul(x, weight(256, 256)).id(), "q");
  graph.add_output(matmul(x, weight(256, 256)).id(), "k");
  const CandidateGraph start(graph, cost_);
  BacktrackingOptions options;
  options.alpha = 0;
  options.gamma = 1;
  const double without = backtrack(start, matcher_, options).front().candidate->score().sum_us;
  options.slack_us = start.score().sum_us;
  const double with = backtrack(start, matcher_, options).front().candidate->score().sum_us;
  EXPECT_LT(with, without);
}

TEST_F(SearchTest, GivesUpWhereNothingIsGained) {
  const CandidateGraph start(gated_blocks(3), cost_);
  BacktrackingOptions options;
  options.slack_us = start.score().sum_us;
  size_t few = 0;
  size_t many = 0;
  options.max_popped = 60;
  options.on_candidate = [&](double) { ++many; };
  backtrack(start, matcher_, options);
  options.max_idle = 1;
  options.on_candidate = [&](double) { ++few; };
  backtrack(start, matcher_, options);
  EXPECT_LT(few, many);
}

TEST_F(SearchTest, ReplayTakesTheSameSteps) {
  const CandidateGraph start(gated_blocks(1), cost_);
  BacktrackingOptions options;
  options.max_popped = 30;
  for (const Rewritten& one : backtrack(start, matcher_, options)) {
    const Replayed again = replay(start.graph(), matcher_, one.steps);
    EXPECT_EQ(again.steps.size(), one.steps.size());
    EXPECT_EQ(structural_hash(again.graph), structural_hash(one.candidate->graph()));
  }
}

// ---- Parts -------------------------------------------------------------------------------------------------------

void expect_ordered(const Graph& graph, const Partition& parts) {
  std::vector<int> part_of(graph.node_capacity(), -1);
  size_t count = 0;
  for (size_t p = 0; p < parts.parts.size(); ++p) {
    for (const NodeId id : parts.parts[p]) {
      EXPECT_EQ(part_of[id.index], -1);
      part_of[id.index] = static_cast<int>(p);
      ++count;
    }
  }
  EXPECT_EQ(count, graph.num_nodes());
  for (const NodeId id : graph.nodes()) {
    for (const ValueId v : graph.node(id).inputs()) {
      const NodeId producer = v.is_valid() ? graph.value(v).producer() : NodeId{};
      if (!producer.is_valid()) continue;
      EXPECT_LE(part_of[producer.index], part_of[id.index]);
    }
  }
}

TEST_F(SearchTest, PartsAreSmallDisjointAndInOrder) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Graph graph = make_random_graph(random, 30).graph;
    const Partition parts = partition(graph, matcher_.find_all(graph), {4, 9});
    expect_ordered(graph, parts);
    for (const auto& [first, last] : parts.intervals) EXPECT_LE(first, last);
  }
  const Graph chain = gated_blocks(12);
  const Partition parts = partition(chain, matcher_.find_all(chain), {8, 20});
  EXPECT_GT(parts.parts.size(), 6u);
  for (const auto& part : parts.parts) EXPECT_LT(part.size(), 8u);
}

TEST_F(SearchTest, StitchedGraphsComputeTheSame) {
  const Graph graph = gated_blocks(6);
  const Partition parts = partition(graph, matcher_.find_all(graph), {6, 13});
  std::vector<IntervalOptions> intervals;
  BacktrackingOptions options;
  options.max_popped = 12;
  options.keep = 4;
  for (const auto& [first, last] : parts.intervals) {
    std::vector<NodeId> nodes;
    for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
    const auto part = std::make_shared<const PartGraph>(extract_part(graph, nodes));
    std::vector<Rewritten> found = backtrack(CandidateGraph(part->graph, cost_), matcher_, options);
    intervals.push_back({first, last, part, std::make_shared<PartOptions>(PartOptions{part, std::move(found)})});
  }
  const std::vector<Stitched> best = stitch(graph, intervals, parts.parts.size(), {.alpha = 1, .keep = 5});
  ASSERT_EQ(best.size(), 5u);
  EXPECT_LT(best[0].us, CandidateGraph(graph, cost_).score().mixed_us(1));
  for (const Stitched& one : best) {
    const Graph whole = Assembler(graph, intervals, matcher_).assemble(one.pieces).graph;
    verify(whole);
    expect_same_numbers(whole, graph);
  }
}

TEST_F(SearchTest, EqualPartsHaveEqualKeys) {
  const Graph graph = gated_blocks(2);
  const std::vector<NodeId> order = graph.nodes();
  const std::vector<NodeId> first(order.begin(), order.begin() + 6);
  const std::vector<NodeId> second(order.begin() + 6, order.end());
  EXPECT_EQ(part_key(extract_part(graph, first)), part_key(extract_part(graph, second)));
  const Graph wider = gated_blocks(2, 16);
  EXPECT_NE(part_key(extract_part(wider, first)), part_key(extract_part(graph, first)));
}

}  // namespace
}  // namespace autograph

// What makes a search of deep graphs fit its time: gains taken together, matches found again only near a change, equal
// parts searched once, and prefixes that know no more than what crosses a cut.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>

#include "autograph/compare_values.h"
#include "autograph/random.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/ledger.h"
#include "optimize/search/partition.h"
#include "optimize/search/search_testing.h"
#include "optimize/search/stitch.h"
#include "support/graphs/deep_graphs.h"
#include "support/graphs/random_graph.h"
#include "support/moved_runs.h"

namespace autograph {
namespace {

class DeepSearch : public testing::Test {
 protected:
  std::shared_ptr<const PartGraph> part_of(const Graph& graph, const std::vector<NodeId>& nodes) const {
    return std::make_shared<const PartGraph>(extract_part(graph, nodes));
  }
  std::shared_ptr<const PartOptions> search(std::shared_ptr<const PartGraph> part) {
    BacktrackingOptions options;
    options.max_popped = 12;
    options.keep = 3;
    std::vector<Rewritten> found = backtrack(CandidateGraph(part->graph, cost_), matcher_, options);
    return std::make_shared<const PartOptions>(PartOptions{std::move(part), std::move(found)});
  }
  // Every interval of a partition, searched by itself.
  std::vector<IntervalOptions> search_all(const Graph& graph, const Partition& parts) {
    std::vector<IntervalOptions> intervals;
    for (const auto& [first, last] : parts.intervals) {
      std::vector<NodeId> nodes;
      for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
      const auto part = part_of(graph, nodes);
      intervals.push_back({first, last, part, search(part)});
    }
    return intervals;
  }

  PlainCost model_;
  FusedCost cost_{model_};
  std::vector<const Rule*> rules_ = every_rule();
  RuleMatcher matcher_{rules_};
};

// ---- One graph after the other -----------------------------------------------------------------------------------

// What was tried in a parent is not tried again in a child, far from what changed: it must still be true there.
TEST_F(DeepSearch, CostsThatWereTakenOverAreTrue) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Random random(seed);
    const Graph graph = seed % 3 == 0 ? gated_blocks(4) : make_random_graph(random, 25).graph;
    const CandidateGraph start(graph, cost_);
    double told_us = std::numeric_limits<double>::infinity();
    BacktrackingOptions options;
    options.alpha = 0;
    options.gamma = 1.2;
    options.max_popped = 40;
    options.on_candidate = [&](double best_us) { told_us = std::min(told_us, best_us); };
    const std::vector<Rewritten> found = backtrack(start, matcher_, options);
    for (const Rewritten& one : found) {
      const double fresh_us = CandidateGraph(one.candidate->graph(), cost_).score().sum_us;
      EXPECT_NEAR(one.candidate->score().sum_us, fresh_us, 1e-9 * fresh_us);
    }
    if (told_us < 1e300) {
      EXPECT_LE(found.front().candidate->score().sum_us, told_us * (1 + 1e-9)) << "seed " << seed;
    }
  }
}

TEST_F(DeepSearch, GainsThatDoNotTouchEachOtherAreTakenAtOnce) {
  constexpr int kBlocks = 40;
  const CandidateGraph one(gated_blocks(1), cost_);
  const CandidateGraph many(gated_blocks(kBlocks), cost_);
  BacktrackingOptions options;
  options.alpha = 0;
  options.max_popped = 4;
  const auto gain = [&](const CandidateGraph& start) {
    return start.score().sum_us - backtrack(start, matcher_, options).front().candidate->score().sum_us;
  };
  EXPECT_GT(gain(one), 0);
  EXPECT_GT(gain(many), 0.7 * kBlocks * gain(one));
}

TEST_F(DeepSearch, LongestPathsAreFoundAgainAfterASearchByTheSum) {
  const CandidateGraph start(gated_blocks(6), cost_);
  BacktrackingOptions options;
  options.alpha = 0;
  options.max_popped = 6;
  for (const Rewritten& one : backtrack(start, matcher_, options)) {
    const double fresh_us = CandidateGraph(one.candidate->graph(), cost_).score().critical_us;
    EXPECT_NEAR(one.candidate->score().critical_us, fresh_us, 1e-9 * fresh_us);
  }
}

TEST_F(DeepSearch, StopsInTheMidstOfAGraph) {
  const CandidateGraph start(gated_blocks(60), cost_);
  BacktrackingOptions options;
  size_t num_tried = 0;
  options.on_candidate = [&](double) { ++num_tried; };
  options.should_stop = [&] { return num_tried >= 20; };
  backtrack(start, matcher_, options);
  EXPECT_LT(num_tried, 60u);
}

// ---- Parts ---------------------------------------------------------------------------------------------------------

// The cheapest of all ways by trying every one: keeping frontiers must lose none.
TEST_F(DeepSearch, StitchingFindsTheCheapestOfAllWays) {
  const Graph graph = gated_blocks(3);
  const Partition parts = partition(graph, matcher_.find_all(graph), {6, 13});
  ASSERT_GE(parts.parts.size(), 3u);
  const std::vector<IntervalOptions> intervals = search_all(graph, parts);
  Assembler assembler(graph, intervals, matcher_);
  double least_us = std::numeric_limits<double>::infinity();
  size_t num_ways = 0;
  const std::function<void(uint32_t, std::vector<Stitched::Piece>)> go_on = [&](uint32_t part,
                                                                                std::vector<Stitched::Piece> pieces) {
    if (part == parts.parts.size()) {
      ++num_ways;
      const CandidateGraph whole(assembler.assemble(pieces).graph, cost_);
      least_us = std::min(least_us, whole.score().mixed_us(1));
      return;
    }
    for (size_t n = 0; n < intervals.size(); ++n) {
      for (size_t option = 0; intervals[n].first == part && option < intervals[n].options().size(); ++option) {
        std::vector<Stitched::Piece> longer = pieces;
        longer.push_back({n, option});
        go_on(intervals[n].last + 1, std::move(longer));
      }
    }
  };
  go_on(0, {});
  ASSERT_GT(num_ways, 20u);
  const std::vector<Stitched> best = stitch(graph, intervals, parts.parts.size(), {.alpha = 1, .keep = 200});
  const double best_us = CandidateGraph(assembler.assemble(best.front().pieces).graph, cost_).score().mixed_us(1);
  // Costs of parts leave out what a node gains beside one of the next part.
  EXPECT_NEAR(best_us, least_us, 0.02 * least_us);
  EXPECT_GE(best.front().us, least_us * (1 - 1e-9));
}

TEST_F(DeepSearch, StitchingThatMustStopStillGivesAWholeGraph) {
  const Graph graph = gated_blocks(6);
  const Partition parts = partition(graph, matcher_.find_all(graph), {6, 13});
  const std::vector<IntervalOptions> intervals = search_all(graph, parts);
  const std::vector<Stitched> best =
      stitch(graph, intervals, parts.parts.size(), {.keep = 5, .should_stop = [] { return true; }});
  ASSERT_EQ(best.size(), 1u);
  verify(Assembler(graph, intervals, matcher_).assemble(best.front().pieces).graph);
}

// The nodes of a graph in runs of equal length.
std::vector<std::vector<NodeId>> runs_of(const Graph& graph, size_t size) {
  const std::vector<NodeId> order = graph.topological_order();
  std::vector<std::vector<NodeId>> runs;
  for (size_t begin = 0; begin < order.size(); begin += size) {
    runs.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                      order.begin() + static_cast<std::ptrdiff_t>(std::min(begin + size, order.size())));
  }
  return runs;
}

// x -> (x c) d, block by block; `factors` holds c and d of each.
Graph factors_in_a_row(const std::vector<std::pair<float, float>>& factors) {
  Graph graph("factors");
  Var x = input(graph, DType::f32, {4, 32}, "x");
  for (size_t block = 0; block < factors.size(); ++block) {
    const ProvenanceScope scope("block" + std::to_string(block));
    for (const float factor : {factors[block].first, factors[block].second}) {
      x = mul(x, constant(graph, Tensor::of<float>({32}, std::vector<float>(32, factor))));
    }
    x = sigmoid(x);
  }
  graph.add_output(x.id(), "y");
  return graph;
}

TEST_F(DeepSearch, WhatWasFoundForOneBlockIsAppliedToAllEqualOnes) {
  const Graph graph = factors_in_a_row({{2, 3}, {0.5F, 4}, {1.5F, 0.25F}});
  std::vector<IntervalOptions> intervals;
  for (const std::vector<NodeId>& run : runs_of(graph, 3)) {
    const auto part = part_of(graph, run);
    const auto found = intervals.empty() ? search(part) : intervals.front().found;
    EXPECT_EQ(part_key(*part), part_key(*found->part));
    const auto number = static_cast<uint32_t>(intervals.size());
    intervals.push_back({number, number, part, found});
  }
  const std::vector<Stitched> best = stitch(graph, intervals, intervals.size(), {});
  const Assembler::Whole whole = Assembler(graph, intervals, matcher_).assemble(best.front().pieces);
  EXPECT_EQ(whole.steps.size(), 3u);
  std::set<std::string> places;
  for (const RewriteStep& step : whole.steps) places.insert(step.origins.front());
  EXPECT_EQ(places, (std::set<std::string>{"block0/mul", "block1/mul", "block2/mul"}));
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(run_reference(whole.graph, inputs), run_reference(graph, inputs), {}).ok);
}

// Weights of a block decide there: a product of factors next to the end of the range is not made.
TEST_F(DeepSearch, BlockWhoseWeightsForbidARewriteStaysAsItIs) {
  const Graph graph = factors_in_a_row({{2, 3}, {1e30F, 1e-30F}});
  const std::vector<std::vector<NodeId>> runs = runs_of(graph, 3);
  const auto first = part_of(graph, runs[0]);
  const auto second = part_of(graph, runs[1]);
  ASSERT_EQ(part_key(*first), part_key(*second));
  const auto found = search(first);
  ASSERT_FALSE(found->options.front().steps.empty());
  const std::vector<IntervalOptions> intervals = {{0, 0, first, found}, {1, 1, second, found}};
  const Assembler::Whole whole = Assembler(graph, intervals, matcher_).assemble({{0, 0}, {1, 0}});
  ASSERT_EQ(whole.steps.size(), 1u);
  EXPECT_EQ(whole.steps.front().origins.front(), "block0/mul");
  verify(whole.graph);
}

TEST_F(DeepSearch, LayersOfADeepNetworkAreCutIntoFewKindsOfParts) {
  for (const Graph& graph : {deep_transformer(24), deep_cnn(60)}) {
    const Partition parts = partition(graph, matcher_.find_all(graph), {12, 30});
    std::set<Hash128> kinds;
    PartCutter cutter(graph);
    for (const auto& [first, last] : parts.intervals) {
      std::vector<NodeId> nodes;
      for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
      const PartGraph part = cutter.cut(nodes);
      kinds.insert(part_key(part));
      // As if it were the first one.
      const PartGraph alone = extract_part(graph, nodes);
      EXPECT_EQ(part_key(part), part_key(alone));
      EXPECT_EQ(part.inputs, alone.inputs);
      EXPECT_EQ(part.outputs, alone.outputs);
    }
    EXPECT_LT(kinds.size(), parts.intervals.size() / 2) << graph.name();
  }
}

// What is left when time is over stays one part.
TEST_F(DeepSearch, NothingIsCutWhenTimeIsOver) {
  const Graph graph = deep_cnn(60);
  int cuts = 0;
  const Partition parts = partition(graph, matcher_.find_all(graph), {6, 13, [&] { return ++cuts > 2; }});
  EXPECT_LE(parts.parts.size(), 4U);
  size_t num_nodes = 0;
  for (const auto& part : parts.parts) num_nodes += part.size();
  EXPECT_EQ(num_nodes, graph.num_nodes());
}

// ---- The ledger ----------------------------------------------------------------------------------------------------

TEST_F(DeepSearch, LedgerHasWhatWasTriedAtTheNodeAndNothingElse) {
  const Graph graph = factors_in_a_row({{2, 3}, {0.5F, 4}});
  Ledger ledger({"block1/mul"});
  BacktrackingOptions options;
  options.ledger = &ledger;
  const std::vector<Rewritten> found = backtrack(CandidateGraph(graph, cost_), matcher_, options);
  const std::vector<Ledger::Tried> tried = ledger.tried();
  ASSERT_FALSE(tried.empty());
  for (const Ledger::Tried& one : tried) {
    EXPECT_TRUE(std::count(one.origins.begin(), one.origins.end(), "block1/mul")) << one.rule;
    EXPECT_GE(one.times, 1u);
  }
  EXPECT_EQ(tried.front().rule, "arithmetic.join_factors");
  EXPECT_GT(tried.front().gain_us, 0);
  EXPECT_TRUE(tried.front().is_affordable);
}

TEST_F(DeepSearch, LedgerTellsWhatWasTooDear) {
  Graph graph("expands");
  const Var x = input(graph, DType::f32, {64, 64}, "x");
  const Var y = input(graph, DType::f32, {64, 64}, "y");
  const ProvenanceScope scope("here");
  const Var w = constant(graph, Tensor::zeros(DType::f32, {64, 64}));
  graph.add_output(matmul(add(x, y), w).id(), "z");
  Ledger ledger({"here/matmul"});
  BacktrackingOptions options;
  options.gamma = 1;
  options.ledger = &ledger;
  backtrack(CandidateGraph(graph, cost_), matcher_, options);
  for (const Ledger::Tried& one : ledger.tried()) {
    EXPECT_LE(one.gain_us, 0) << one.rule;
    EXPECT_FALSE(one.is_affordable) << one.rule;
  }
}

}  // namespace
}  // namespace autograph

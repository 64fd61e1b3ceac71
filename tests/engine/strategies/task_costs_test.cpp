// What nodes of a finished graph take, for schedulers: asked as long as there is time.
#include <gtest/gtest.h>

#include "optimize/search/search_testing.h"
#include "support/strategy_fixture.h"

namespace autograph {
namespace {

class TaskCostsTest : public StrategyFixture {};

TEST_F(TaskCostsTest, EndWithTheSearch) {
  int asked = 0;
  search_.is_cancelled = [&] { return ++asked > 5; };
  open("sim:v100");
  const Graph graph = context_->finish(gated_blocks(20));
  ASSERT_GT(graph.num_nodes(), 20U);
  asked = 0;
  EXPECT_FALSE(context_->tasks(graph));
  EXPECT_EQ(asked, 6) << "what comes behind the end is not asked about";
  EXPECT_FALSE(context_->makespan_us(graph));
  Proposal plain;
  plain.finished = graph;
  EXPECT_FALSE(context_->predicted_us(plain));
  EXPECT_TRUE(context_->is_cut_short());
}

TEST_F(TaskCostsTest, EndWithTheBudgetUnlessCandidatesCount) {
  open("sim:v100");
  const Graph graph = context_->finish(gated_blocks(3));
  EXPECT_TRUE(context_->tasks(graph));
  search_.budget_seconds = 1e-9;
  EXPECT_FALSE(context_->tasks(graph));
  search_.candidates = 1;
  EXPECT_EQ(context_->tasks(graph).value().size(), graph.num_nodes());
}

// Where candidates are counted the clock ends nothing else.
TEST_F(TaskCostsTest, MeasuringTakesAPartOfTheBudget) {
  open("cpu");
  MeasurementCache cache(folder_.path());
  const Graph graph = context_->simplify(gated_blocks(2));
  search_.candidates = 1;
  search_.budget_seconds = 1e-9;
  context_->cost_plain(graph);
  EXPECT_GT(report_.cost_before_us, 0);
  EXPECT_EQ(cache.size(), 0);
  search_.budget_seconds = 100;
  context_->cost_plain(graph);
  EXPECT_GT(cache.size(), 0);
}

TEST_F(TaskCostsTest, ThePlainGraphIsNotCostedWhereTheBudgetIsOver) {
  open("sim:v100");
  const Graph graph = context_->simplify(gated_blocks(2));
  search_.spent_seconds = 2 * search_.budget_seconds;
  context_->cost_plain(graph);
  EXPECT_EQ(report_.cost_before_us, 0);
  search_.spent_seconds = 0;
  context_->cost_plain(graph);
  EXPECT_GT(report_.cost_before_us, 0);
}

}  // namespace
}  // namespace autograph

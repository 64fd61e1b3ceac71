// Parts that are searched both ways: what an equality graph finds is among the options, within the same budget.
#include "engine/strategies/part_search.h"

#include <gtest/gtest.h>

#include "optimize/search/search_testing.h"
#include "support/strategy_fixture.h"

namespace autograph {
namespace {

class PartSearchTest : public StrategyFixture {
 protected:
  // The least mixed cost that searching the whole graph as one part gives.
  std::vector<IntervalOptions> run(bool use_equality, int candidates) {
    report_ = {};
    search_.use_equality = use_equality;
    search_.candidates = candidates;
    open("sim:v100");
    return PartSearch(*context_, *cost_).run(graph_, whole_graph(graph_), {});
  }

  const Graph graph_ = gated_blocks(3, 32);
};

TEST_F(PartSearchTest, BothWaysShareTheBudget) {
  const std::vector<IntervalOptions> both = run(true, 200);
  EXPECT_LE(report_.candidates, 210U);
  ASSERT_EQ(both.size(), 1U);
  const std::vector<Rewritten>& options = both.front().options();
  ASSERT_GT(options.size(), static_cast<size_t>(search_.keep)) << "more than one way keeps";
  for (size_t i = 1; i < options.size(); ++i) {
    EXPECT_LE(options[i - 1].candidate->score().mixed_us(1), options[i].candidate->score().mixed_us(1) * (1 + 1e-9));
    EXPECT_NE(options[i - 1].candidate->score().hash, options[i].candidate->score().hash);
  }
}

// Of large graphs cutting out all parts takes long.
TEST_F(PartSearchTest, NothingIsCutOutWhenItsTimeIsOver) {
  search_.spent_seconds = 50;  // of 100
  open("sim:v100");
  PartSearch search(*context_, *cost_);
  EXPECT_TRUE(search.run(graph_, whole_graph(graph_), {.cut_until = 0.4}).empty());
  EXPECT_FALSE(search.run(graph_, whole_graph(graph_), {.cut_until = 0.6}).empty());
}

TEST_F(PartSearchTest, EqualityGraphsAreOffByDefault) {
  const std::vector<IntervalOptions> one = run(SearchOptions().use_equality, 200);
  EXPECT_LE(one.front().options().size(), static_cast<size_t>(search_.keep));
}

}  // namespace
}  // namespace autograph

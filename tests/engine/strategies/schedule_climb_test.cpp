// Rewrites ranked by the schedule of the whole: what is found ends sooner than the graph at the start, by the makespan
// of its best list schedule, and computes the same.
#include "engine/strategies/schedule_climb.h"

#include <gtest/gtest.h>

#include "autograph/compare_values.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "optimize/search/search_testing.h"
#include "support/moved_runs.h"
#include "support/strategy_fixture.h"

namespace autograph {
namespace {

class ScheduleClimbTest : public StrategyFixture {
 protected:
  ScheduleClimbTest() {
    search_.max_candidates = 10;
    search_.keep = 4;
    open("sim:v100");
  }
};

TEST_F(ScheduleClimbTest, EndsSoonerAndComputesTheSame) {
  const Graph graph = gated_blocks(3, 32);
  const double before_us = *context_->makespan_us(context_->finish(graph));
  const std::vector<Rewritten> found = climb_by_schedule(*context_, graph, *cost_, 1, 0);
  ASSERT_FALSE(found.empty());
  EXPECT_LT(*context_->makespan_us(context_->finish(found.front().candidate->graph())), before_us);
  const std::vector<Datum> inputs = seeded_inputs(graph);
  const std::vector<Datum> expected = run_reference(graph, inputs);
  for (const Rewritten& rewritten : found) {
    EXPECT_FALSE(rewritten.steps.empty());
    verify(rewritten.candidate->graph());
    EXPECT_TRUE(compare_all(run_reference(rewritten.candidate->graph(), inputs), expected, {}).ok);
  }
}

TEST_F(ScheduleClimbTest, StopsWhenTimeIsOver) {
  const std::vector<Rewritten> found = climb_by_schedule(*context_, gated_blocks(40), *cost_, 0, 0);
  EXPECT_TRUE(found.empty()) << "no graph was looked at";
}

}  // namespace
}  // namespace autograph

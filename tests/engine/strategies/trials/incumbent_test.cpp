// The best plan so far: what its trials tell is kept for where no time is left to measure it once more.
#include "engine/strategies/trials/incumbent.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/seeded_inputs.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

// Products side by side, which several streams take less time for.
Graph side_by_side() {
  Graph graph("side_by_side");
  const Var x = input(graph, DType::f32, {8, 256}, "x");
  for (int branch = 0; branch < 4; ++branch) {
    const std::vector<float> weight(256 * 256, 0.01F * static_cast<float>(branch + 1));
    graph.add_output(relu(matmul(x, constant(graph, Tensor::of<float>({256, 256}, weight)))).id(),
                     "y" + std::to_string(branch));
  }
  return graph;
}

class IncumbentTest : public testing::Test {
 protected:
  IncumbentTest() {
    compile_.device = "sim:v100";
    compile_.cache_folder = folder_ / "cache";
    search_.budget_seconds = 100;
    search_.inputs = seeded_inputs(side_by_side());
  }
  void open() { context_.emplace(get_device(compile_.device), compile_, search_, report_); }

  TestFolder folder_;
  CompileOptions compile_;
  SearchOptions search_;
  SearchReport report_;
  std::optional<StrategyContext> context_;
};

TEST_F(IncumbentTest, KeepsWhatTheTrialsOfTheBestTold) {
  open();
  const Proposal plain = context_->propose(side_by_side());
  Incumbent incumbent(*context_, plain);
  try_list(*context_, incumbent, plain);
  ASSERT_FALSE(report_.trials.empty());
  ASSERT_TRUE(report_.trials.back().accepted);
  incumbent.take();
  ASSERT_TRUE(context_->best_run());
  EXPECT_TRUE(context_->best_run()->difference.ok);
  EXPECT_EQ(context_->best_run()->ms, report_.trials.back().latency_ms);
  EXPECT_NEAR(context_->best_run()->gained, report_.trials.back().latency_ms / report_.trials.front().best_ms, 1e-12);
  EXPECT_GT(context_->best_run()->trial_seconds, 0);
}

TEST_F(IncumbentTest, ThePlainPlanHasWonNoTrial) {
  open();
  const Proposal plain = context_->propose(side_by_side());
  Incumbent incumbent(*context_, plain);
  incumbent.take();
  EXPECT_FALSE(context_->best_run());
  EXPECT_TRUE(context_->plain_run());
}

}  // namespace
}  // namespace autograph

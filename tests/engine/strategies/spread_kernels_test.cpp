// Kernels cut into parts that run side by side: what fills little of a device that streams share, where its schedule
// ends sooner for it, and nothing else.
#include "engine/strategies/spread_kernels.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/compare_values.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/window.h"
#include "autograph/random.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "support/moved_runs.h"
#include "support/strategy_fixture.h"

namespace autograph {
namespace {

// Convolutions of 3x3 one behind the other.
Graph conv_chain(int count, int64_t channels, int64_t size) {
  Graph graph("chain");
  Random random(7);
  Var x = input(graph, DType::f32, {1, channels, size, size}, "x");
  for (int k = 0; k < count; ++k) {
    const Var w = constant(graph, draw_tensor(random, DType::f32, {channels, channels, 3, 3}, -0.1, 0.1));
    x = relu(conv(x, w, {}, {.pads = {1, 1, 1, 1}}));
  }
  graph.add_output(x.id(), "y");
  return graph;
}

class SpreadKernelsTest : public StrategyFixture {
 protected:
  Rewritten spread(const Graph& graph, double until = 1) { return spread_kernels(*context_, graph, *cost_, until); }

  void use(const std::string& device) {
    open(device);
    context_->set_measuring(false);
  }
};

TEST_F(SpreadKernelsTest, EndSoonerAndComputeTheSame) {
  use("sim:h200");
  const Graph graph = conv_chain(2, 128, 14);
  const Rewritten found = spread(graph);
  EXPECT_EQ(found.steps.size(), 2U);
  for (const RewriteStep& step : found.steps) {
    EXPECT_EQ(step.rule->kind, RuleClass::spreads);
    EXPECT_GT(step.gain_us, 0);
  }
  const Graph& after = found.candidate->graph();
  verify(after);
  EXPECT_LT(1.5 * *context_->makespan_us(context_->finish(after)), *context_->makespan_us(context_->finish(graph)));
  const std::vector<Datum> inputs = seeded_inputs(graph);
  EXPECT_TRUE(compare_all(run_reference(after, inputs), run_reference(graph, inputs), {}).ok);
}

TEST_F(SpreadKernelsTest, NotWhatFillsTheDevice) {
  use("sim:h200");
  EXPECT_TRUE(spread(conv_chain(2, 32, 224)).steps.empty());
}

TEST_F(SpreadKernelsTest, NotWhereNothingIsKnownOfTheRoomThatKernelsLeave) {
  use("cpu");
  EXPECT_TRUE(spread(conv_chain(2, 128, 14)).steps.empty());
}

TEST_F(SpreadKernelsTest, NotWhenTimeIsOver) {
  use("sim:h200");
  EXPECT_TRUE(spread(conv_chain(2, 128, 14), 0).steps.empty());
}

TEST_F(SpreadKernelsTest, NotWithRulesThatAreDisabled) {
  for (const RuleInfo& rule : list_rules()) {
    if (rule.kind == RuleClass::spreads) search_.disabled_rules.push_back(rule.name);
  }
  ASSERT_FALSE(search_.disabled_rules.empty());
  use("sim:h200");
  EXPECT_TRUE(spread(conv_chain(2, 128, 14)).steps.empty());
}

// Other strategies have the rules among all others, with their own objectives: more work is no gain to a sum.
TEST_F(SpreadKernelsTest, RivalsHaveTheRulesToo) {
  const auto has_spreading_rules = [&](Strategy strategy) {
    search_.strategy = strategy;
    use("sim:h200");
    const std::vector<RuleMatch> matches = context_->matcher().find_all(conv_chain(1, 128, 14));
    return std::any_of(matches.begin(), matches.end(),
                       [](const RuleMatch& match) { return match.rule().kind == RuleClass::spreads; });
  };
  EXPECT_TRUE(has_spreading_rules(Strategy::paper));
  EXPECT_TRUE(has_spreading_rules(Strategy::taso));
  EXPECT_FALSE(has_spreading_rules(Strategy::search)) << "tried apart";
}

}  // namespace
}  // namespace autograph

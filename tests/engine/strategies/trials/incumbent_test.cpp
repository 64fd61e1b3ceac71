// The best plan so far: what its trials tell is kept for where no time is left to measure it once more.
#include "engine/strategies/trials/incumbent.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/linear.h"
#include "autograph/seeded_inputs.h"
#include "support/slow_op.h"
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

// Nodes that read one another, on two streams in turn: each waits for the other stream.
TEST_F(IncumbentTest, DoesNotRunWhatMustTakeLonger) {
  Graph chain("chain");
  Var y = input(chain, DType::f32, {8, 256}, "x");
  for (int i = 0; i < 8; ++i) y = softmax(y);
  chain.add_output(y.id(), "y");
  search_.inputs = seeded_inputs(chain);
  open();
  const Proposal plain = context_->propose(chain);
  Incumbent incumbent(*context_, plain);
  Stage stage{.streams = {{}, {}}};
  size_t number = 0;
  for (const NodeId id : plain.finished.topological_order()) stage.streams[number++ % 2].push_back(id);
  const Schedule in_turns{.stages = {stage}};
  incumbent.try_schedule(plain, in_turns);
  EXPECT_TRUE(report_.trials.empty());
  Proposal slow = plain;
  slow.schedule = in_turns;
  EXPECT_FALSE(incumbent.try_candidate(slow));
  EXPECT_GT(report_.trials.back().latency_ms, kClearLoss * report_.trials.back().best_ms);
}

TEST_F(IncumbentTest, ThePlainPlanHasWonNoTrial) {
  open();
  const Proposal plain = context_->propose(side_by_side());
  Incumbent incumbent(*context_, plain);
  incumbent.take();
  EXPECT_FALSE(context_->best_run());
  EXPECT_TRUE(context_->plain_run());
}

// On a processor, with a graph of one node and another that gives the same in more time.
class IncumbentOnCpuTest : public IncumbentTest {
 protected:
  IncumbentOnCpuTest() {
    compile_.device = "cpu";
    compile_.threads = 1;
    search_.inputs = seeded_inputs(one_node(false));
  }
  static Graph one_node(bool is_slow) {
    Graph graph("one_node");
    const Var x = input(graph, DType::f32, {4, 8}, "x");
    graph.add_output((is_slow ? apply(slow_relu_def(), {x}) : relu(x)).id(), "y");
    return graph;
  }
};

// Where others lost against it the plain plan has been timed: it need not be once more.
TEST_F(IncumbentOnCpuTest, LostTrialsTellWhatThePlainPlanTakes) {
  open();
  Incumbent incumbent(*context_, context_->propose(one_node(false)));
  EXPECT_FALSE(context_->plain_run()->is_timed);
  EXPECT_FALSE(incumbent.try_candidate(context_->propose(one_node(true))));
  incumbent.take();
  EXPECT_FALSE(context_->best_run());
  EXPECT_TRUE(context_->plain_run()->is_timed);
  EXPECT_DOUBLE_EQ(context_->plain_run()->ms, report_.trials.back().best_ms);  // kept in us
  EXPECT_LT(context_->plain_run()->ms, report_.trials.back().latency_ms);
}

// The clock of a search goes on from what the command has spent.
TEST_F(IncumbentOnCpuTest, NothingIsRepeatedWhenTheBudgetIsOver) {
  for (const bool is_over : {false, true}) {
    search_.spent_seconds = is_over ? search_.budget_seconds : 0;
    open();
    const Incumbent incumbent(*context_, context_->propose(one_node(true)));
    EXPECT_EQ(incumbent.has_time_to_repeat(), !is_over);
    EXPECT_EQ(incumbent.has_time_to_choose_stages(), !is_over);
    const Executable executable = context_->trial().compile(incumbent.best());
    // By chance a trial looks decided after a few rounds, too.
    size_t rounds = 0;
    for (int i = 0; i < 10 && rounds <= 3; ++i) {
      rounds = context_->trial().ab_trial(executable, executable, 1).rounds;
    }
    EXPECT_EQ(rounds <= 3, is_over) << rounds;
  }
}

// Where the budget is over, the kernels of the plain plan are not attested, and those of all others must be.
class UnattestedTest : public IncumbentTest {
 protected:
  UnattestedTest() { compile_.device = "cpu"; }

  // Products of extents of their own.
  static Graph products(const std::vector<int64_t>& columns) {
    Graph graph("products");
    const Var x = input(graph, DType::f32, {8, 256}, "x");
    for (const int64_t n : columns) {
      const Tensor weight = Tensor::of<float>({256, n}, std::vector<float>(static_cast<size_t>(256 * n), 0.01F));
      graph.add_output(tanh(matmul(x, constant(graph, weight))).id(), "y" + std::to_string(n));
    }
    return graph;
  }
  static Graph plain_graph() { return products({32, 48, 64}); }
};

TEST_F(UnattestedTest, PlansArePlainWhereTheBudgetIsOver) {
  compile_.attest = true;
  search_.budget_seconds = 1e-6;
  search_.spent_seconds = 1;
  open();
  const Proposal plain = context_->propose(plain_graph());
  Incumbent incumbent(*context_, plain);
  const Trial& trial = context_->trial();
  EXPECT_NE(trial.describe_unattested().find("no time to attest"), std::string::npos);
  trial.compile(plain);
  EXPECT_FALSE(trial.has_unattested()) << "what the plain plan has is no worse than that";
  Proposal proposal = context_->propose(products({80}));
  proposal.cost_us = 1;
  EXPECT_FALSE(incumbent.try_candidate(proposal));
  EXPECT_TRUE(trial.has_unattested());
  ASSERT_FALSE(report_.trials.empty());
  EXPECT_FALSE(report_.trials.back().is_right);
}

TEST_F(UnattestedTest, KernelsAreAttestedInTheBudget) {
  compile_.attest = true;
  open();
  const Trial& trial = context_->trial();
  trial.compile_plain(context_->propose(plain_graph()));
  trial.compile(context_->propose(products({80})));
  EXPECT_EQ(trial.describe_unattested(), "");
  EXPECT_FALSE(trial.has_unattested());
}

// What later plans take to make is what counts, and what was attested once is known.
TEST_F(UnattestedTest, TellsWhatAttestingTookApart) {
  compile_.attest = true;
  open();
  const Trial& trial = context_->trial();
  const Proposal plain = context_->propose(plain_graph());
  trial.compile_plain(plain);
  EXPECT_GT(trial.seconds_tried(), 0);
  trial.compile_plain(plain);
  EXPECT_EQ(trial.seconds_tried(), 0);
}

// Who counts candidates wants the same plan however long it takes.
TEST_F(UnattestedTest, CandidatesAreNoClock) {
  compile_.attest = true;
  search_.budget_seconds = 1e-6;
  search_.spent_seconds = 1;
  search_.candidates = 10;
  open();
  const Trial& trial = context_->trial();
  trial.compile_plain(context_->propose(plain_graph()));
  EXPECT_EQ(trial.describe_unattested(), "");
}

}  // namespace
}  // namespace autograph

// Costs of stages by measurement: what is measured, how often, and when an estimate must do.
#include "engine/strategies/trials/measured_stages.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "support/test_folder.h"

namespace autograph {
namespace {

constexpr double kUs = 50;  // of each task, so that equal branches are worth a try

// Two pairs of equal branches: matmul and reshape, each with weights of its own.
Graph branches() {
  Graph graph;
  const Var x = input(graph, DType::f32, {8, 64}, "x");
  for (int branch = 0; branch < 4; ++branch) {
    const auto weight = std::vector<float>(64 * 64, 0.01F * static_cast<float>(branch + 1));
    const Var y = matmul(x, constant(graph, Tensor::of<float>({64, 64}, weight)));
    graph.add_output(reshape(y, {64, 8}).id(), "y" + std::to_string(branch));
  }
  return graph;
}

class MeasuredStagesTest : public testing::Test {
 protected:
  MeasuredStagesTest() {
    compile_.threads = 2;
    compile_.cache_folder = folder_.path();
    search_.max_streams = 2;
    search_.budget_seconds = 100;
    context_.emplace(get_device("cpu"), compile_, search_, report_);
    proposal_ = context_->propose(branches());
    tasks_ = make_task_graph(proposal_.finished, [](const Graph& graph, NodeId id) {
      const bool is_work = graph.node(id).op().name == "matmul";
      return is_work ? Task{id, kUs, 1.2 * kUs} : Task{id, 0, 0};
    });
    for (TaskIndex task = 0; task < tasks_.size(); ++task) {
      if (tasks_.tasks[task].us > 0) products_.push_back(task);
    }
  }

  TestFolder folder_;
  CompileOptions compile_;
  SearchOptions search_;
  SearchReport report_;
  std::optional<StrategyContext> context_;
  Proposal proposal_;
  TaskGraph tasks_;
  std::vector<TaskIndex> products_;
};

TEST_F(MeasuredStagesTest, MeasuresStagesOfSeveralStreamsOnce) {
  ASSERT_EQ(products_.size(), 4u);
  MeasuredStages stages(*context_, proposal_, tasks_, 1);
  const double us = stages.us({{products_[0]}, {products_[1]}});
  EXPECT_GT(us, 0);
  EXPECT_EQ(stages.num_measured(), 1u);
  // The same work with other weights.
  EXPECT_EQ(stages.us({{products_[2]}, {products_[3]}}), us);
  EXPECT_EQ(stages.num_measured(), 1u);
  EXPECT_GT(stages.us({{products_[0], products_[2]}, {products_[1]}}), 0);
  EXPECT_EQ(stages.num_measured(), 2u);
}

TEST_F(MeasuredStagesTest, OneStreamIsTheSumOfItsKernels) {
  MeasuredStages stages(*context_, proposal_, tasks_, 1);
  EXPECT_EQ(stages.us({{products_[0], products_[1], products_[2]}}), 3 * kUs);
  EXPECT_EQ(stages.num_measured(), 0u);
}

TEST_F(MeasuredStagesTest, EstimatesWhatIsHopelessAndWhatComesTooLate) {
  const TaskStreams streams = {{products_[0]}, {products_[1]}};
  MeasuredStages late(*context_, proposal_, tasks_, 0);
  EXPECT_EQ(late.us(streams), estimate_stage_us(tasks_, streams, context_->limits()));
  EXPECT_EQ(late.num_measured(), 0u);
  for (Task& task : tasks_.tasks) task.narrow_us = 10 * task.us;
  MeasuredStages hopeless(*context_, proposal_, tasks_, 1);
  EXPECT_EQ(hopeless.us(streams), estimate_stage_us(tasks_, streams, context_->limits()));
  EXPECT_EQ(hopeless.num_measured(), 0u);
}

}  // namespace
}  // namespace autograph

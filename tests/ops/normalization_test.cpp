// Normalizations against values worked out by hand.
#include "autograph/ops/normalization.h"

#include <gtest/gtest.h>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

Tensor ones(int64_t count) { return Tensor::of<float>({count}, std::vector<float>(static_cast<size_t>(count), 1.0f)); }
Tensor zeros(int64_t count) { return Tensor::zeros(DType::f32, {count}); }

TEST(BatchNormalization, UsesTheGivenStatisticsPerChannel) {
  const Tensor x = Tensor::of<float>({1, 2, 2}, {1, 3, 10, 20});
  const Tensor scale = Tensor::of<float>({2}, {2, 1});
  const Tensor bias = Tensor::of<float>({2}, {0, 5});
  const Tensor mean = Tensor::of<float>({2}, {1, 10});
  const Tensor variance = Tensor::of<float>({2}, {4, 25});
  expect_near(run_op(batch_normalization_def(), {x, scale, bias, mean, variance}, {{"epsilon", 0.0f}}), {0, 2, 5, 7},
              1e-6);
}

TEST(BatchNormalization, TrainingGivesBatchStatisticsAndBlendsRunningOnes) {
  const Tensor x = Tensor::of<float>({2, 1}, {1, 3});  // mean 2, variance 1
  const auto y = run_op_all(batch_normalization_def(), {x, ones(1), zeros(1), zeros(1), ones(1)},
                            {{"epsilon", 0.0f}, {"momentum", 0.75f}, {"training_mode", int64_t{1}}}, 3);
  expect_near(y[0], {-1, 1}, 1e-6);
  expect_near(y[1], {0.5}, 1e-6);
  expect_near(y[2], {1.0}, 1e-6);
}

TEST(BatchNormalization, RejectsStatisticsOfAnotherLength) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 2, 2});
  EXPECT_EQ(error_of(batch_normalization_def(), {x, ones(2), ones(3), ones(2), ones(2)}),
            "[batch_normalization] channels: expected equal extents, got 2 and 3");
}

TEST(BatchNormalization, RejectsRunningStatisticsWithoutTraining) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 1});
  EXPECT_EQ(error_of(batch_normalization_def(), {x, ones(1), ones(1), ones(1), ones(1)}, {}, 3),
            "[batch_normalization] outputs: running statistics come out only with training_mode 1");
}

TEST(LayerNormalization, NormalizesRowsAndGivesStatistics) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 3, -4, 4});
  const Tensor scale = Tensor::of<float>({2}, {1, 2});
  const Tensor bias = Tensor::of<float>({2}, {10, 0});
  const auto y = run_op_all(layer_normalization_def(), {x, scale, bias}, {{"epsilon", 0.0f}}, 3);
  expect_near(y[0], {9, 2, 9, 2}, 1e-6);
  EXPECT_EQ(y[1].dims(), (Dims{2, 1}));
  expect_near(y[1], {2, 0}, 1e-6);
  expect_near(y[2], {1, 0.25}, 1e-6);
}

TEST(LayerNormalization, AxisZeroNormalizesEverything) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 1, 3, 3});
  const Tensor scale = Tensor::of<float>({1}, {1});
  expect_near(run_op(layer_normalization_def(), {x, scale}, {{"axis", int64_t{0}}, {"epsilon", 0.0f}}), {-1, -1, 1, 1},
              1e-6);
}

TEST(LayerNormalization, RejectsAScaleThatWouldStretchX) {
  EXPECT_EQ(error_of(layer_normalization_def(), {Tensor::zeros(DType::f32, {2, 1}), ones(3)}),
            "[layer_normalization] parameter shape: [3] does not broadcast to [2,1]");
}

TEST(InstanceNormalization, NormalizesEachChannelOfEachInstance) {
  const Tensor x = Tensor::of<float>({2, 2, 2}, {1, 3, 0, 4, -1, 1, 5, 7});
  const Tensor scale = Tensor::of<float>({2}, {1, 2});
  const Tensor bias = Tensor::of<float>({2}, {0, 10});
  expect_near(run_op(instance_normalization_def(), {x, scale, bias}, {{"epsilon", 0.0f}}), {-1, 1, 8, 12, -1, 1, 8, 12},
              1e-6);
}

TEST(GroupNormalization, NormalizesGroupsAndScalesChannels) {
  const Tensor x = Tensor::of<float>({1, 4, 1}, {1, 3, 10, 30});
  const Tensor scale = Tensor::of<float>({4}, {1, 2, 3, 4});
  expect_near(run_op(group_normalization_def(), {x, scale, zeros(4)}, {{"num_groups", int64_t{2}}, {"epsilon", 0.0f}}),
              {-1, 2, -3, 4}, 1e-6);
}

TEST(GroupNormalization, RejectsGroupsThatDoNotDivideTheChannels) {
  EXPECT_EQ(error_of(group_normalization_def(), {Tensor::zeros(DType::f32, {1, 3}), ones(3), ones(3)},
                     {{"num_groups", int64_t{2}}}),
            "[group_normalization] num_groups: expected a divisor of 3 channels, got 2");
  EXPECT_EQ(error_of(group_normalization_def(), {Tensor::zeros(DType::f32, {1, 3}), ones(3), ones(3)},
                     {{"num_groups", int64_t{0}}}),
            "[group_normalization] num_groups: expected 1 or more, got 0");
}

TEST(BatchNormalizationGrad, TakesAwayWhatMeanAndVarianceTake) {
  const Tensor x = Tensor::of<float>({2, 1}, {1, 3});  // with epsilon 3 the normalised ones are -0.5 and 0.5
  const Tensor gy = Tensor::of<float>({2, 1}, {1, 5});
  const auto g =
      run_op_all(batch_normalization_grad_def(), {x, Tensor::of<float>({1}, {2}), gy}, {{"epsilon", 3.0f}}, 3);
  expect_near(g[0], {-1.5, 1.5}, 1e-6);
  expect_near(g[1], {2}, 1e-6);
  expect_near(g[2], {6}, 1e-6);
  EXPECT_EQ(error_of(batch_normalization_grad_def(), {x, ones(1), Tensor::zeros(DType::f32, {3, 1})}),
            "[batch_normalization_grad] gy: expected equal extents, got 2 and 3");
}

TEST(LayerNormalizationGrad, TakesAwayWhatMeanAndVarianceTake) {
  const Tensor x = Tensor::of<float>({1, 2}, {1, 3});
  const Tensor gy = Tensor::of<float>({1, 2}, {1, 5});
  const auto g =
      run_op_all(layer_normalization_grad_def(), {x, Tensor::of<float>({2}, {1, 2}), gy}, {{"epsilon", 3.0f}}, 3);
  expect_near(g[0], {-1.6875, 1.6875}, 1e-6);
  expect_near(g[1], {-0.5, 2.5}, 1e-6);
  expect_near(g[2], {1, 5}, 1e-6);
  EXPECT_EQ(error_of(layer_normalization_grad_def(), {x, ones(3), gy}),
            "[layer_normalization_grad] shapes: [1,2] and [3] do not broadcast");
}

TEST(RmsNormalization, DividesByTheRootMeanSquare) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 7, 3, 3});  // root mean squares 5 and 3
  expect_near(run_op(rms_normalization_def(), {x, ones(1)}, {{"epsilon", 0.0f}}), {0.2, 1.4, 1, 1}, 1e-6);
}

TEST(LpNormalization, DividesByTheNormAndLeavesZeroRows) {
  const Tensor x = Tensor::of<float>({2, 2}, {3, -4, 0, 0});
  expect_near(run_op(lp_normalization_def(), {x}), {0.6, -0.8, 0, 0}, 1e-6);
  expect_near(run_op(lp_normalization_def(), {x}, {{"p", int64_t{1}}}), {3.0 / 7, -4.0 / 7, 0, 0}, 1e-6);
  expect_near(run_op(lp_normalization_def(), {x}, {{"axis", int64_t{0}}}), {1, -1, 0, 0}, 1e-6);
  EXPECT_EQ(error_of(lp_normalization_def(), {x}, {{"p", int64_t{3}}}), "[lp_normalization] p: expected 1 or 2, got 3");
}

TEST(MeanVarianceNormalization, AveragesOverTheAxes) {
  const Tensor x = Tensor::of<float>({2, 2}, {1, 10, 3, 30});
  expect_near(run_op(mean_variance_normalization_def(), {x}, {{"axes", std::vector<int64_t>{0}}}), {-1, -1, 1, 1},
              1e-6);
  EXPECT_EQ(error_of(mean_variance_normalization_def(), {x}),
            "[mean_variance_normalization] axes: expected -2..1 for rank 2, got 2");
}

}  // namespace
}  // namespace autograph

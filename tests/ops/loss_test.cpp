// Losses: the formulas on two rows, ignored labels, weights, and labels that no class has.
#include "autograph/ops/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

Tensor scores() { return Tensor::of<float>({2, 3}, {-1, -2, -3, -4, -5, -6}); }
Tensor labels(const std::vector<int64_t>& values) { return Tensor::vector(values); }

TEST(NegativeLogLikelihood, ReductionsAndWeights) {
  const OpDef& op = negative_log_likelihood_loss_def();
  const Tensor weights = Tensor::of<float>({3}, {1, 3, 1});
  const auto reduced = [&](const char* how) {
    return run_op(op, {scores(), labels({0, 1}), weights}, {{"reduction", std::string(how)}});
  };
  expect_near(reduced("none"), {1, 15}, 0);
  expect_near(reduced("sum"), {16}, 0);
  expect_near(reduced("mean"), {4}, 0);  // 16 / (1 + 3)
}

TEST(NegativeLogLikelihood, IgnoredLabelsCountNothing) {
  const Attributes ignore{{"ignore_index", int64_t{-7}}};
  expect_near(run_op(negative_log_likelihood_loss_def(), {scores(), labels({-7, 2})}, ignore), {6}, 0);
  EXPECT_TRUE(std::isnan(run_op(negative_log_likelihood_loss_def(), {scores(), labels({-7, -7})}, ignore).to_f64()[0]));
}

TEST(NegativeLogLikelihood, LabelsWithoutClassAreRejected) {
  EXPECT_EQ(error_of(negative_log_likelihood_loss_def(), {scores(), labels({0, 3})}),
            "[loss] labels: expected 0..2, got 3");
  EXPECT_EQ(error_of(negative_log_likelihood_loss_def(), {scores(), labels({0})}),
            "[negative_log_likelihood_loss] labels: expected the shape of the scores [2,3] without axis 1, got [1]");
}

TEST(SoftmaxCrossEntropy, GivesLossAndLogProbabilities) {
  const Tensor x = Tensor::of<float>({1, 2, 1}, {0, std::log(3.0F)});
  const Tensor label = Tensor::of<int32_t>({1, 1}, {1});
  const std::vector<Tensor> y = run_op_all(softmax_cross_entropy_loss_def(), {x, label}, {}, 2);
  expect_near(y[0], {-std::log(0.75)}, 1e-6);
  expect_near(y[1], {std::log(0.25), std::log(0.75)}, 1e-6);
  EXPECT_EQ(y[1].dims(), (Dims{1, 2, 1}));
}

}  // namespace
}  // namespace autograph

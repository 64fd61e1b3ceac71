// Optimiser steps of one weight, by hand.
#include <gtest/gtest.h>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

Tensor one(float value) { return Tensor::of<float>({1}, {value}); }

TEST(Adagrad, DividesByTheRootOfTheGatheredSquares) {
  const auto y = run_op_all(adagrad_def(), {one(0.5f), Tensor::scalar<int64_t>(1), one(1), one(3), one(16)},
                            {{"decay_factor", 1.0f}, {"epsilon", 1.0f}}, 2);
  expect_near(y[0], {1 - 0.25 * 3 / 6}, 1e-6);
  expect_near(y[1], {25}, 1e-6);
}

TEST(Momentum, NesterovLooksAhead) {
  Attributes attributes{{"alpha", 0.5f}, {"beta", 2.0f}, {"norm_coefficient", 1.0f}, {"mode", std::string("standard")}};
  const std::vector<Tensor> inputs{one(0.5f), Tensor::scalar<int64_t>(1), one(1), one(3), one(2)};
  auto y = run_op_all(momentum_def(), inputs, attributes, 2);  // g = 4, V' = 1 + 8
  expect_near(y[0], {1 - 4.5}, 1e-6);
  expect_near(y[1], {9}, 1e-6);
  attributes.set("mode", std::string("nesterov"));
  y = run_op_all(momentum_def(), inputs, attributes, 2);
  expect_near(y[0], {1 - 0.5 * (4 + 4.5)}, 1e-6);
}

TEST(Adam, FirstStepIsNotCorrected) {
  const auto y = run_op_all(adam_def(), {one(0.5f), Tensor::scalar<int64_t>(0), one(1), one(2), one(0), one(0)},
                            {{"alpha", 0.5f}, {"beta", 0.75f}, {"epsilon", 0.0f}}, 3);
  expect_near(y[0], {0.5}, 1e-6);  // V' = 1, H' = 1
  expect_near(y[1], {1}, 1e-6);
  expect_near(y[2], {1}, 1e-6);
}

TEST(Optimizers, RejectIncompleteGroups) {
  EXPECT_EQ(error_of(adam_def(), {one(1), Tensor::scalar<int64_t>(0), one(1), one(1)}, {}, 1),
            "[adam] inputs: expected groups of 4 tensors, got 2 tensors");
}

}  // namespace
}  // namespace autograph

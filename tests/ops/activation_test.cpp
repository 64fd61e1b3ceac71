// Activation functions: values checked by hand, and the inputs where naive formulas overflow.
#include "autograph/ops/activation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

Tensor row(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(Activation, LargeInputsDoNotOverflow) {
  const Tensor x = row({-1000, 1000});
  expect_near(run_op(sigmoid_def(), {x}), {0, 1}, 0);
  expect_near(run_op(softplus_def(), {x}), {0, 1000}, 0);
  expect_near(run_op(mish_def(), {x}), {0, 1000}, 0);
  expect_near(run_op(swish_def(), {x}), {0, 1000}, 0);
}

TEST(Activation, NegativeBranchesUseTheirParameters) {
  const double e = std::exp(-1.0) - 1;
  const Tensor x = row({-1, 2});
  expect_near(run_op(elu_def(), {x}, {{"alpha", 2.0F}}), {2 * e, 2}, 1e-6);
  expect_near(run_op(selu_def(), {x}, {{"alpha", 2.0F}, {"gamma", 3.0F}}), {6 * e, 6}, 1e-6);
  expect_near(run_op(celu_def(), {x}, {{"alpha", 2.0F}}), {2 * (std::exp(-0.5) - 1), 2}, 1e-6);
  expect_near(run_op(leaky_relu_def(), {x}, {{"alpha", 0.5F}}), {-0.5, 2}, 0);
  expect_near(run_op(thresholded_relu_def(), {x}, {{"alpha", -2.0F}}), {-1, 2}, 0);
  expect_near(run_op(hard_sigmoid_def(), {x}, {{"alpha", 0.25F}, {"beta", 0.5F}}), {0.25, 1}, 0);
  expect_near(run_op(hard_swish_def(), {x}), {-1.0 / 3, 2.0 * 5 / 6}, 1e-6);
}

TEST(Activation, BiasGeluRunsAsItsBody) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2}, "x");
  graph.add_output(bias_gelu(x, constant(graph, row({0.5F, -1}))).id());
  const std::vector<Datum> y = compile(graph, {.device = "reference"}).run({Tensor::of<float>({1, 2}, {0.5F, 1})});
  expect_near(y[0].tensor(), {0.841344746, 0}, 1e-6);
  EXPECT_EQ(error_of(bias_gelu_def(), {row({1}), Tensor::scalar(1.0F)}),
            "[bias_gelu] input 'bias': expected rank 1, got []");
}

TEST(Activation, GeluHasAnExactAndAnApproximateForm) {
  // 0.5 * (1 + erf(1 / sqrt 2)) and 0.5 * (1 + tanh(sqrt(2 / pi) * 1.044715)).
  expect_near(run_op(gelu_def(), {row({1})}), {0.841344746}, 1e-6);
  expect_near(run_op(gelu_def(), {row({1})}, {{"approximate", std::string("tanh")}}), {0.841191990}, 1e-6);
}

TEST(Activation, GeluIsPreciseFarBelowZero) {
  expect_near(run_op(gelu_def(), {row({-6})}), {-5.9195259e-09}, 1e-14);
  expect_near(run_op(gelu_def(), {row({-6})}, {{"approximate", std::string("tanh")}}), {-8.4396467e-11}, 1e-15);
}

TEST(Activation, ShrinkTakesIntegers) {
  const Tensor x = Tensor::of<int32_t>({4}, {-3, -1, 1, 3});
  const Tensor y = run_op(shrink_def(), {x}, {{"bias", 1.0F}, {"lambd", 1.0F}});
  EXPECT_EQ(elements<int32_t>(y), (std::vector<int32_t>{-2, 0, 0, 2}));
}

TEST(Activation, SwigluWantsEqualShapes) {
  expect_near(run_op(swiglu_def(), {row({0, 2}), row({5, 3})}), {0, 6 / (1 + std::exp(-2.0))}, 1e-6);
  EXPECT_EQ(error_of(swiglu_def(), {row({1, 2}), row({1})}), "[swiglu] shapes: expected equal ones, got [2] and [1]");
}

TEST(Activation, SoftmaxFamilyWorksAlongAnyAxis) {
  const Tensor x = Tensor::of<float>({2, 2}, {0, 5, 1000, 5});
  expect_near(run_op(softmax_def(), {x}, {{"axis", int64_t{0}}}), {0, 0.5, 1, 0.5}, 1e-12);
  expect_near(run_op(log_softmax_def(), {x}, {{"axis", int64_t{0}}}), {-1000, -std::log(2.0), 0, -std::log(2.0)}, 1e-6);
  expect_near(run_op(hardmax_def(), {x}, {{"axis", int64_t{-2}}}), {0, 1, 1, 0}, 0);
}

TEST(Activation, HardmaxTakesTheFirstOfEqualElements) {
  expect_near(run_op(hardmax_def(), {row({1, 3, 3})}), {0, 1, 0}, 0);
}

}  // namespace
}  // namespace autograph

// Random ops: seeds repeat, moments are right within sampling error, and inference-mode dropout is the identity.
#include "autograph/ops/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return sum / static_cast<double>(values.size());
}

TEST(Random, TheSameSeedDrawsTheSameNumbers) {
  const Attributes one{{"shape", Dims{2, 3}}, {"seed", 1.0F}};
  const Attributes two{{"shape", Dims{2, 3}}, {"seed", 2.0F}};
  const Tensor x = run_op(random_uniform_def(), {}, one);
  EXPECT_EQ(x.dims(), (Dims{2, 3}));
  EXPECT_TRUE(x.bitwise_equal(run_op(random_uniform_def(), {}, one)));
  EXPECT_FALSE(x.bitwise_equal(run_op(random_uniform_def(), {}, two)));
  EXPECT_FALSE(random_uniform_def().traits.pure);
}

TEST(Random, MomentsMatchTheDistribution) {
  // Standard errors of the means of 10,000 draws: 0.006 and 0.02; tolerances are five of them.
  const Attributes uniform{{"shape", Dims{10000}}, {"seed", 3.0F}, {"low", 1.0F}, {"high", 3.0F}};
  const std::vector<double> u = run_op(random_uniform_def(), {}, uniform).to_f64();
  EXPECT_NEAR(mean_of(u), 2, 0.03);
  EXPECT_GE(*std::min_element(u.begin(), u.end()), 1);
  EXPECT_LE(*std::max_element(u.begin(), u.end()), 3);
  const Attributes normal{{"shape", Dims{10000}}, {"seed", 3.0F}, {"mean", 5.0F}, {"scale", 2.0F}};
  std::vector<double> n = run_op(random_normal_def(), {}, normal).to_f64();
  EXPECT_NEAR(mean_of(n), 5, 0.1);
  for (double& v : n) v = (v - 5) * (v - 5);
  EXPECT_NEAR(mean_of(n), 4, 0.3);
}

TEST(Random, LikeFormsTakeShapeAndDtype) {
  const Tensor x = Tensor::zeros(DType::f16, {2, 2});
  EXPECT_EQ(to_string(run_op(random_normal_like_def(), {x}, {{"seed", 1.0F}}).type()), "f16[2,2]");
  EXPECT_EQ(to_string(run_op(random_uniform_like_def(), {x}, {{"dtype", DType::f64}}).type()), "f64[2,2]");
}

TEST(Random, NegativeExtentsAreRejected) {
  EXPECT_EQ(error_of(random_uniform_def(), {}, {{"shape", Dims{2, -1}}}),
            "[random_uniform] shape: expected extents of 0 or more, got -1");
}

TEST(Bernoulli, ProbabilitiesZeroAndOneAreCertain) {
  const Tensor x = Tensor::of<float>({4}, {0, 1, 0, 1});
  EXPECT_EQ(elements<bool>(run_op(bernoulli_def(), {x}, {{"dtype", DType::boolean}})),
            (std::vector<bool>{false, true, false, true}));
}

TEST(Multinomial, DrawsOnlyClassesWithWeight) {
  const float none = -INFINITY;
  const Tensor x = Tensor::of<float>({2, 3}, {none, 7, none, none, none, 7});
  const Tensor y = run_op(multinomial_def(), {x}, {{"sample_size", int64_t{2}}, {"seed", 1.0F}});
  EXPECT_EQ(elements<int32_t>(y), (std::vector<int32_t>{1, 1, 2, 2}));
  EXPECT_EQ(error_of(multinomial_def(), {Tensor::of<float>({1, 1}, {none})}),
            "[multinomial] x: expected a finite largest element, got -inf");
}

TEST(Dropout, InferenceKeepsEverything) {
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  const std::vector<Tensor> y = run_op_all(dropout_def(), {x, Tensor::scalar(0.9F)}, {}, 2);
  EXPECT_TRUE(y[0].bitwise_equal(x));
  EXPECT_EQ(elements<bool>(y[1]), (std::vector<bool>{true, true, true}));
}

TEST(Dropout, TrainingScalesWhatItKeeps) {
  Tensor x = Tensor::zeros(DType::f32, {1000});
  std::fill_n(x.mutable_data<float>(), 1000, 3.0F);
  const std::vector<Tensor> inputs{x, Tensor::scalar(0.25F), Tensor::scalar(true)};
  const std::vector<Tensor> y = run_op_all(dropout_def(), inputs, {{"seed", int64_t{5}}}, 2);
  for (int64_t i = 0; i < 1000; ++i) EXPECT_EQ(y[0].data<float>()[i], y[1].data<bool>()[i] ? 4.0F : 0.0F);
  EXPECT_NEAR(mean_of(y[0].to_f64()), 3, 0.3);  // standard error 0.055
  EXPECT_TRUE(y[0].bitwise_equal(run_op_all(dropout_def(), inputs, {{"seed", int64_t{5}}}, 2)[0]));
}

TEST(Dropout, RatioMustLeaveSomething) {
  EXPECT_EQ(error_of(dropout_def(), {Tensor::zeros(DType::f32, {1}), Tensor::scalar(1.0F), Tensor::scalar(true)}),
            "[dropout] ratio: expected 0 <= ratio < 1, got 1");
}

}  // namespace
}  // namespace autograph

// Reductions: axes and shapes, empty sets, integer and bool dtypes, ties and NaN.
#include "autograph/ops/reduction.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor matrix() { return Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}); }

TEST(Reduce, AxesAndKeepdimsDecideTheShape) {
  const Tensor y = run_op(reduce_sum_def(), {matrix(), Tensor::vector({-1})});
  EXPECT_EQ(y.dims(), (Dims{2, 1}));
  EXPECT_EQ(elements<float>(y), (std::vector<float>{6, 15}));
  const Tensor z = run_op(reduce_sum_def(), {matrix(), Tensor::vector({0})}, {{"keepdims", int64_t{0}}});
  EXPECT_EQ(z.dims(), (Dims{3}));
  EXPECT_EQ(elements<float>(z), (std::vector<float>{5, 7, 9}));
  EXPECT_EQ(error_of(reduce_sum_def(), {matrix(), Tensor::vector({2})}),
            "[reduce_sum] axes: expected -2..1 for rank 2, got 2");
}

TEST(Reduce, WithoutAxesAllOrNoneAreReduced) {
  EXPECT_EQ(elements<float>(run_op(reduce_mean_def(), {matrix()})), (std::vector<float>{3.5F}));
  const Tensor y = run_op(reduce_sum_square_def(), {matrix()}, {{"noop_with_empty_axes", int64_t{1}}});
  EXPECT_EQ(elements<float>(y), (std::vector<float>{1, 4, 9, 16, 25, 36}));
}

TEST(Reduce, EachFormulaOnOneRow) {
  const Tensor x = Tensor::of<float>({3}, {1, 2, 2});
  expect_near(run_op(reduce_prod_def(), {x}), {4}, 0);
  expect_near(run_op(reduce_l1_def(), {x}), {5}, 0);
  expect_near(run_op(reduce_l2_def(), {x}), {3}, 0);
  expect_near(run_op(reduce_log_sum_def(), {x}), {std::log(5.0)}, 1e-6);
  expect_near(run_op(reduce_log_sum_exp_def(), {Tensor::of<float>({2}, {1000, 1000})}), {1000 + std::log(2.0)}, 1e-4);
}

TEST(Reduce, NothingGivesTheIdentity) {
  const Tensor x = Tensor::zeros(DType::f32, {2, 0});
  const Tensor axes = Tensor::vector({1});
  EXPECT_EQ(run_op(reduce_sum_def(), {x, axes}).to_f64(), (std::vector<double>{0, 0}));
  EXPECT_EQ(run_op(reduce_prod_def(), {x, axes}).to_f64(), (std::vector<double>{1, 1}));
  EXPECT_EQ(run_op(reduce_max_def(), {x, axes}).to_f64(), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(run_op(reduce_log_sum_exp_def(), {x, axes}).to_f64(), (std::vector<double>{-kInf, -kInf}));
  EXPECT_EQ(run_op(reduce_min_def(), {Tensor::zeros(DType::u8, {0})}).to_i64(), (std::vector<int64_t>{255}));
}

TEST(Reduce, MaxAndMinTakeBoolsAndPropagateNan) {
  const Tensor x = Tensor::of<bool>({2, 2}, {true, false, false, false});
  EXPECT_EQ(elements<bool>(run_op(reduce_max_def(), {x, Tensor::vector({1})})), (std::vector<bool>{true, false}));
  EXPECT_EQ(elements<bool>(run_op(reduce_min_def(), {x, Tensor::vector({1})})), (std::vector<bool>{false, false}));
  EXPECT_TRUE(std::isnan(run_op(reduce_max_def(), {Tensor::of<float>({3}, {1, NAN, 3})}).to_f64()[0]));
}

TEST(Reduce, UnknownAxesStillGiveARank) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, Dim::symbol("n"), 4}, "x");
  const Var axes = input(graph, DType::i64, {1}, "axes");
  EXPECT_EQ(to_string(apply(reduce_sum_def(), {x, axes}).type()), "f32[?,?,?]");
  EXPECT_EQ(to_string(apply(reduce_sum_def(), {x, axes}, {{"keepdims", int64_t{0}}}).type()), "f32[?,?]");
  EXPECT_EQ(to_string(reduce_max(x, {0, 2}, false).type()), "f32[n]");
}

TEST(ArgMax, TiesGoToTheFirstOrTheLastAndNanWins) {
  const Tensor x = Tensor::of<float>({2, 3}, {1, 3, 3, NAN, 5, NAN});
  const Attributes first{{"axis", int64_t{1}}, {"keepdims", int64_t{0}}};
  Attributes last = first;
  last.set("select_last_index", int64_t{1});
  EXPECT_EQ(run_op(arg_max_def(), {x}, first).to_i64(), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(run_op(arg_max_def(), {x}, last).to_i64(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(run_op(arg_min_def(), {x}, first).to_i64(), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(error_of(arg_max_def(), {Tensor::zeros(DType::f32, {0})}),
            "[arg_max] axis: expected an extent of 1 or more, got 0");
}

TEST(Cumulative, ExclusiveAndReverseCombine) {
  const Tensor x = Tensor::of<float>({3}, {1, 2, 3});
  const Tensor axis = Tensor::scalar<int64_t>(0);
  const Attributes both{{"exclusive", int64_t{1}}, {"reverse", int64_t{1}}};
  EXPECT_EQ(elements<float>(run_op(cum_sum_def(), {x, axis})), (std::vector<float>{1, 3, 6}));
  EXPECT_EQ(elements<float>(run_op(cum_sum_def(), {x, axis}, both)), (std::vector<float>{5, 3, 0}));
  EXPECT_EQ(elements<float>(run_op(cum_prod_def(), {x, axis}, both)), (std::vector<float>{6, 3, 1}));
  EXPECT_EQ(error_of(cum_sum_def(), {x, Tensor::scalar<int32_t>(1)}),
            "[cum_sum] axis: expected -1..0 for rank 1, got 1");
}

TEST(TopK, EqualElementsKeepTheirOrder) {
  const Tensor x = Tensor::of<float>({1, 4}, {2, 7, 2, NAN});
  const std::vector<Tensor> y = run_op_all(top_k_def(), {x, Tensor::vector({3})}, {{"largest", int64_t{0}}}, 2);
  EXPECT_EQ(y[0].dims(), (Dims{1, 3}));
  EXPECT_EQ(elements<float>(y[0]), (std::vector<float>{2, 2, 7}));
  EXPECT_EQ(y[1].to_i64(), (std::vector<int64_t>{0, 2, 1}));
  EXPECT_EQ(error_of(top_k_def(), {x, Tensor::vector({5})}), "[top_k] k: expected 0..4, got 5");
}

}  // namespace
}  // namespace autograph

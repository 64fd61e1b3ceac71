// Matrix products against sums done by hand.
#include "autograph/ops/linear.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/defs.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

using Floats = std::vector<float>;

TEST(Matmul, MultipliesStacksAndBroadcastsBatches) {
  const Tensor a = Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::of<float>({2, 2}, {1, 10, 100, 1000});
  const Tensor y = run_op(matmul_def(), {a, b});
  EXPECT_EQ(y.dims(), (Dims{2, 1, 2}));
  EXPECT_EQ(elements<float>(y), (Floats{201, 2010, 403, 4030}));
}

TEST(Matmul, VectorsActAsRowAndColumn) {
  const Tensor v = Tensor::of<float>({2}, {3, 4});
  EXPECT_EQ(elements<float>(run_op(matmul_def(), {v, v})), Floats{25});
  const Tensor m = Tensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(run_op(matmul_def(), {v, m}).dims(), Dims{3});
  EXPECT_EQ(elements<float>(run_op(matmul_def(), {v, m})), (Floats{19, 26, 33}));
}

TEST(Matmul, IntegersWrapAround) {
  const Tensor a = Tensor::of<int32_t>({1, 2}, {2147483647, 2});
  const Tensor b = Tensor::of<int32_t>({2, 1}, {1, 1});
  EXPECT_EQ(elements<int32_t>(run_op(matmul_def(), {a, b})), std::vector<int32_t>{-2147483647});
}

TEST(Matmul, EmptyInnerExtentGivesZeros) {
  const Tensor y = run_op(matmul_def(), {Tensor::of<float>({2, 0}, {}), Tensor::of<float>({0, 1}, {})});
  EXPECT_EQ(elements<float>(y), (Floats{0, 0}));
}

TEST(Matmul, RejectsInnerExtentsThatDiffer) {
  EXPECT_EQ(error_of(matmul_def(), {Tensor::zeros(DType::f32, {2, 3}), Tensor::zeros(DType::f32, {4, 2})}),
            "[matmul] inner extent: 3 of [2,3] and 4 of [4,2] differ");
}

TEST(Matmul, CountsTwoOperationsPerProduct) {
  const std::vector<Type> inputs{{DType::f32, {5, 2, 3}}, {DType::f32, {3, 4}}};
  const std::vector<Type> outputs{{DType::f32, {5, 2, 4}}};
  EXPECT_EQ(cost_of(matmul_def(), {{}, inputs, outputs}).flops, 2.0 * 5 * 2 * 3 * 4);
}

TEST(Gemm, TransposesScalesAndBroadcastsTheAddend) {
  const Tensor a = Tensor::of<float>({2, 1}, {1, 2});  // transposed: [1, 2]
  const Tensor b = Tensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor c = Tensor::of<float>({3}, {10, 20, 30});
  const Attributes attributes{{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 2.0f}, {"beta", 0.5f}};
  EXPECT_EQ(elements<float>(run_op(gemm_def(), {a, b, c}, attributes)), (Floats{15, 32, 49}));
}

TEST(Gemm, DoesNotReadTheAddendWhenBetaIsZero) {
  const Tensor one = Tensor::of<float>({1, 1}, {1});
  const Tensor nan = Tensor::of<float>({1, 1}, {std::nanf("")});
  EXPECT_EQ(elements<float>(run_op(gemm_def(), {one, one, nan}, {{"beta", 0.0f}})), Floats{1});
}

TEST(Gemm, RejectsAnAddendThatDoesNotBroadcast) {
  const Tensor m = Tensor::zeros(DType::f32, {2, 2});
  EXPECT_EQ(error_of(gemm_def(), {m, m, Tensor::zeros(DType::f32, {3})}),
            "[gemm] input 'c': [3] does not broadcast to [2,2]");
}

Tensor run_einsum(const std::string& equation, const std::vector<Tensor>& inputs) {
  return run_op(einsum_def(), inputs, {{"equation", equation}});
}

TEST(Einsum, SumsOverLabelsThatTheOutputLeavesOut) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(elements<float>(run_einsum("ij,jk->ik", {a, a})), (Floats{7, 10, 15, 22}));
  EXPECT_EQ(elements<float>(run_einsum("ij -> i", {a})), (Floats{3, 7}));
  EXPECT_EQ(elements<float>(run_einsum("ij->ji", {a})), (Floats{1, 3, 2, 4}));
}

TEST(Einsum, RepeatedLabelsTakeTheDiagonal) {
  const Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(elements<float>(run_einsum("ii->i", {a})), (Floats{1, 4}));
  EXPECT_EQ(elements<float>(run_einsum("ii", {a})), Floats{5});
}

TEST(Einsum, EllipsisBroadcastsAndComesFirstInTheImplicitOutput) {
  const Tensor a = Tensor::of<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor b = Tensor::of<float>({2, 1}, {10, 1});
  const Tensor y = run_einsum("...ij,jk", {a, b});
  EXPECT_EQ(y.dims(), (Dims{2, 1, 1}));
  EXPECT_EQ(elements<float>(y), (Floats{12, 34}));
}

TEST(Einsum, SumOverNothingIsZero) {
  EXPECT_EQ(elements<float>(run_einsum("ij->i", {Tensor::zeros(DType::f32, {2, 0})})), (Floats{0, 0}));
}

TEST(Einsum, RejectsMalformedEquations) {
  const Tensor a = Tensor::zeros(DType::f32, {2, 3});
  EXPECT_EQ(error_of(einsum_def(), {a}, {{"equation", std::string("i1->i")}}),
            "[einsum] equation: expected letters, '...', ',' and '->', got 'i1->i'");
  EXPECT_EQ(error_of(einsum_def(), {a}, {{"equation", std::string("ij->k")}}),
            "[einsum] equation: output label 'k' of 'ij->k' occurs in no input");
  EXPECT_EQ(error_of(einsum_def(), {a}, {{"equation", std::string("ijk->k")}}),
            "[einsum] rank: expected 3 for term 'ijk', got 2");
  EXPECT_EQ(error_of(einsum_def(), {a}, {{"equation", std::string("ii->i")}}),
            "[einsum] extents: 2 and 3 of one label differ in 'ii->i'");
}

TEST(Det, EliminatesWithRowExchanges) {
  const Tensor x = Tensor::of<float>({2, 2, 2}, {0, 1, 2, 5, 3, 6, 1, 2});
  EXPECT_EQ(elements<float>(run_op(det_def(), {x})), (Floats{-2, 0}));
}

}  // namespace
}  // namespace autograph

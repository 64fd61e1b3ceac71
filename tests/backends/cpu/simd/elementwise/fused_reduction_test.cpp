// Elementwise ops with a reduction at their end against the reference, on every instruction set.
#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/graph.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel() { return cpu_kernel("cpu.fused_reduction_simd", "fused"); }

// |x - b| * 0.5 and then `reduction` over the last `reduced` axes, with b broadcasting.
OpSample reduced_chain(Random& random, const OpDef& reduction, const Dims& dims, size_t reduced) {
  const Dims other = draw_broadcastable(random, dims);
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, Shape::of(dims), "x");
  const Var b = input(*body, DType::f32, Shape::of(other), "b");
  std::vector<int64_t> axes;
  for (size_t a = dims.size() - reduced; a < dims.size(); ++a) axes.push_back(static_cast<int64_t>(a));
  const Var chain = mul(abs(sub(x, b)), constant(*body, Tensor::scalar(0.5F)));
  const Var y = apply(reduction, {chain, constant(*body, Tensor::vector(axes))}, {{"keepdims", draw_bool(random)}});
  body->add_output(y.id());
  return {.inputs = {draw_tensor(random, DType::f32, dims, -1, 1), draw_tensor(random, DType::f32, other, -1, 1)},
          .attributes = {{"body", GraphRef(body)}},
          .num_outputs = 1};
}

Dims random_dims(Random& random, size_t rank) {
  Dims dims;
  for (size_t a = 0; a + 1 < rank; ++a) dims.push_back(draw(random, 1, 9));
  // Rows of less than a tile, of some tiles, and bands of several rows.
  dims.push_back(
      draw_one_of(random, {int64_t{2}, int64_t{7}, int64_t{64}, int64_t{515}, int64_t{1024}, int64_t{2600}}));
  return dims;
}

TEST(FusedReduction, RandomCalls) {
  Random random(31);
  const OpDef* const reductions[] = {&reduce_sum_def(), &reduce_mean_def(),       &reduce_max_def(),
                                     &reduce_l2_def(),  &reduce_sum_square_def(), &reduce_log_sum_exp_def()};
  for (int i = 0; i < 90; ++i) {
    const auto rank = static_cast<size_t>(draw(random, 1, 3));
    const auto reduced = static_cast<size_t>(draw(random, 1, static_cast<int64_t>(rank)));
    const OpSample sample = reduced_chain(random, *reductions[i % 6], random_dims(random, rank), reduced);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_reference(kernel(), KernelCase(fused_def(), sample, {1}), {1e-5, 1e-5}); });
  }
}

TEST(FusedReduction, ThreadsShareRows) {
  Random random(32);
  const OpSample sample = reduced_chain(random, reduce_mean_def(), {37, 5, 700}, 1);
  for (const int threads : {2, 3}) {
    expect_reference(kernel(), KernelCase(fused_def(), sample, {threads}), {1e-5, 1e-5});
  }
}

std::string refusal(const OpSample& sample, int threads = 1) {
  return kernel().why_not(KernelCase(fused_def(), sample, {threads}).call());
}

TEST(FusedReduction, RefusesWhatWouldNotStayInCache) {
  Random random(33);
  EXPECT_EQ(refusal(reduced_chain(random, reduce_sum_def(), {2, 70000}, 1)), "rows that are too long to stay in cache");
  EXPECT_EQ(refusal(reduced_chain(random, reduce_sum_def(), {60000}, 1), 2), "fewer rows than threads");
  EXPECT_EQ(refusal(reduced_chain(random, reduce_sum_def(), {60000}, 1), 1), "");
}

TEST(FusedReduction, RefusesOtherAxes) {
  Random random(34);
  auto body = std::make_shared<Graph>("body");
  const Var x = input(*body, DType::f32, Shape::of({4, 8}), "x");
  const Var y = apply(reduce_sum_def(), {relu(x), constant(*body, Tensor::vector({0}))}, {});
  body->add_output(y.id());
  EXPECT_EQ(refusal({.inputs = {draw_tensor(random, DType::f32, {4, 8})},
                     .attributes = {{"body", GraphRef(body)}},
                     .num_outputs = 1}),
            "a reduction of other than the innermost axes");
}

}  // namespace
}  // namespace autograph

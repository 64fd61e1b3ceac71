// log_softmax and the normalizations over planes, against the reference.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

const FloatTolerance kTolerance{1e-4, 1e-5};

KernelDef instance_kernel() { return simd::plane_normalization_kernels()[0]; }
KernelDef group_kernel() { return simd::plane_normalization_kernels()[1]; }
KernelDef mean_variance_kernel() { return simd::plane_normalization_kernels()[2]; }

// ---- Softmax ---------------------------------------------------------------------------------------------------

TEST(PlaneNormalization, LogSoftmaxAlongEveryAxisOfOddShapes) {
  on_every_isa([] {
    Random random(1);
    for (const Dims& dims : {Dims{1, 1}, Dims{3, 5}, Dims{7, 49}, Dims{2, 197, 3}, Dims{5, 3, 33}, Dims{4, 5000}}) {
      for (int64_t axis = -1; axis < static_cast<int64_t>(dims.size()); ++axis) {
        const OpSample sample{.inputs = {draw_tensor(random, DType::f32, dims, -30, 30)},
                              .attributes = {{"axis", axis}}};
        expect_reference(simd::log_softmax_kernel(), KernelCase(log_softmax_def(), sample));
      }
    }
  });
}

// Rows of several parts, each of which may raise the largest element: in one row it rises all along, in the others
// parts of -inf come first, a NaN is among them, or +inf comes last.
TEST(PlaneNormalization, LogSoftmaxOfLongRowsWhoseLargestElementRises) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr int64_t kCount = 9000;
  Random random(6);
  Tensor x = draw_tensor(random, DType::f32, {6, kCount}, -3, 3).clone();
  auto* rows = x.mutable_data<float>();
  for (int64_t i = 0; i < kCount; ++i) rows[i] += 0.02F * static_cast<float>(i);
  for (const int64_t row : {1, 2, 3, 4}) std::fill_n(rows + row * kCount, row == 4 ? kCount : 5000, -kInfinity);
  rows[2 * kCount + 70] = std::numeric_limits<float>::quiet_NaN();
  rows[4 * kCount - 1] = kInfinity;
  on_every_isa([&] { expect_reference(simd::log_softmax_kernel(), KernelCase(log_softmax_def(), {{x}})); });
}

TEST(PlaneNormalization, LargeLogSoftmaxOnTwoThreads) {
  Random random(2);
  for (const int64_t axis : {0, 1, 2}) {
    const OpSample sample{.inputs = {draw_tensor(random, DType::f32, {30, 13, 130}, -3, 3)},
                          .attributes = {{"axis", axis}}};
    expect_reference(simd::log_softmax_kernel(), KernelCase(log_softmax_def(), sample, {2}));
  }
}

TEST(PlaneNormalization, LogSoftmaxOfNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::of<float>(
      {5, 4}, {1, nan, 3, 4, 1, inf, 3, 4, 1, -inf, 3, 4, -inf, -inf, -inf, -inf, 1e30F, 3, 1, -1e30F});
  on_every_isa([&] {
    for (const int64_t axis : {0, 1}) {
      expect_reference(simd::log_softmax_kernel(), KernelCase(log_softmax_def(), {{x}, {{"axis", axis}}}));
    }
  });
}

// ---- Planes ----------------------------------------------------------------------------------------------------

const std::vector<Dims> kImages{{2, 6, 1, 2}, {1, 6, 5, 7}, {3, 12, 33}, {2, 6, 3, 5, 5}, {2, 6}, {1, 6, 40, 41}};

TEST(PlaneNormalization, InstancesAndGroups) {
  on_every_isa([] {
    Random random(3);
    for (const Dims& dims : kImages) {
      const Tensor x = draw_tensor(random, DType::f32, dims, 2, 5);  // a mean that is not 0
      const Tensor scale = draw_tensor(random, DType::f32, {dims[1]});
      const Tensor bias = draw_tensor(random, DType::f32, {dims[1]});
      for (const int threads : {1, 2}) {
        if (dims.size() > 2) {
          const OpSample sample{{x, scale, bias}, {{"epsilon", 1e-3F}}};
          expect_reference(instance_kernel(), KernelCase(instance_normalization_def(), sample, {threads}), kTolerance);
        }
        for (const int64_t groups : {1, 2, 3}) {
          const OpSample sample{{x, scale, bias}, {{"num_groups", groups}}};
          expect_reference(group_kernel(), KernelCase(group_normalization_def(), sample, {threads}), kTolerance);
        }
      }
    }
  });
}

TEST(PlaneNormalization, MeanAndVarianceOverEverySetOfAxesWithTheLast) {
  on_every_isa([] {
    Random random(4);
    for (const Dims& dims : {Dims{3, 4, 5, 7}, Dims{2, 30, 40, 9}}) {
      const Tensor x = draw_tensor(random, DType::f32, dims, 2, 5);
      for (int64_t mask = 0; mask < 8; ++mask) {
        std::vector<int64_t> axes{-1};
        for (int64_t a = 0; a < 3; ++a) {
          if ((mask >> a & 1) != 0) axes.push_back(a);
        }
        const KernelCase test(mean_variance_normalization_def(), {{x}, {{"axes", axes}}}, {2});
        expect_reference(mean_variance_kernel(), test, kTolerance);
      }
    }
  });
}

// Whatever is left of equal elements without their mean would be divided by 1e-9.
TEST(PlaneNormalization, EqualElementsBecomeZero) {
  const Tensor x = Tensor::of<float>({2, 3, 1111}, std::vector<float>(6666, 0.3F));
  on_every_isa([&] {
    expect_reference(mean_variance_kernel(),
                     KernelCase(mean_variance_normalization_def(), {{x}, {{"axes", std::vector<int64_t>{0, 2}}}}));
  });
}

// Only elements at the mean have no sign there.
TEST(PlaneNormalization, InfiniteScalesKeepTheSign) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  on_every_isa([] {
    Random random(8);
    const OpSample sample{.inputs = {draw_tensor(random, DType::f32, {2, 2, 3, 5}),
                                     Tensor::of<float>({2}, {kInfinity, -kInfinity}), Tensor::of<float>({2}, {1, 2})}};
    expect_reference(instance_kernel(), KernelCase(instance_normalization_def(), sample));
  });
}

// With a mean in f32 alone, all elements would be off by the same part of what its rounding took.
TEST(PlaneNormalization, WhatIsNormalizedHasNoMean) {
  on_every_isa([] {
    Random random(9);
    const Tensor x = draw_tensor(random, DType::f32, {1, 1, 60, 50}, 1000.0, 1000.1);
    const KernelCase test(mean_variance_normalization_def(), {{x}, {{"axes", std::vector<int64_t>{2, 3}}}});
    KernelRun run(mean_variance_kernel(), test);
    run.run();
    const std::vector<double> y = run.outputs()[0].to_f64();
    EXPECT_NEAR(std::accumulate(y.begin(), y.end(), 0.0) / 3000, 0, 2e-7);
  });
}

// ---- Channels-last and blocked tensors ---------------------------------------------------------------------------

TEST(PixelNormalization, InstancesAndGroupsInEveryLayout) {
  Random random(6);
  for (const Dims& dims : {Dims{2, 6, 1, 2}, Dims{1, 32, 5, 7}, Dims{3, 48, 33}, Dims{2, 16, 3, 5, 5},
                           Dims{1, 96, 40, 41}, Dims{2, 43, 9, 9}, Dims{1, 8, 130, 9}}) {
    const Tensor x = draw_tensor(random, DType::f32, dims, 2, 5);
    const Tensor scale = draw_tensor(random, DType::f32, {dims[1]});
    const Tensor bias = draw_tensor(random, DType::f32, {dims[1]});
    for (const int threads : {1, 2, 3}) {
      expect_every_variant(cpu_kernel("cpu.normalization_of_pixels", "instance_normalization"),
                           instance_normalization_def(), {{x, scale, bias}, {{"epsilon", 1e-3F}}}, threads, kTolerance);
      for (const int64_t groups : {int64_t{1}, int64_t{2}, int64_t{8}, dims[1]}) {
        if (dims[1] % groups != 0) continue;
        expect_every_variant(cpu_kernel("cpu.normalization_of_pixels", "group_normalization"),
                             group_normalization_def(), {{x, scale, bias}, {{"num_groups", groups}}}, threads,
                             kTolerance);
      }
    }
  }
}

// What rounding left of their differences would be divided by next to nothing.
TEST(PixelNormalization, EqualElementsBecomeTheBias) {
  const Tensor x = Tensor::of<float>({1, 8, 7, 111}, std::vector<float>(8 * 777, 0.3F));
  const Tensor scale = Tensor::of<float>({8}, std::vector<float>(8, 1e6F));
  const Tensor bias = Tensor::of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8});
  const OpSample sample{{x, scale, bias}, {{"num_groups", int64_t{2}}, {"epsilon", 1e-12F}}};
  expect_every_variant(cpu_kernel("cpu.normalization_of_pixels", "group_normalization"), group_normalization_def(),
                       sample, 2, kTolerance);
}

TEST(PlaneNormalization, SaysWhatItRefuses) {
  Random random(5);
  const auto tensor = [&](Dims dims) { return draw_tensor(random, DType::f32, std::move(dims)); };
  const KernelCase inner(mean_variance_normalization_def(), {{tensor({2, 3})}, {{"axes", std::vector<int64_t>{0}}}});
  EXPECT_EQ(KernelRun(mean_variance_kernel(), inner).refusal(), "the innermost axis is not averaged over");
  const KernelCase single(instance_normalization_def(), {{tensor({2, 3}), tensor({3}), tensor({3})}});
  EXPECT_EQ(KernelRun(instance_kernel(), single).refusal(), "groups of one element");
  const KernelCase stash(group_normalization_def(), {{tensor({2, 4}), tensor({4}), tensor({4})},
                                                     {{"num_groups", int64_t{2}}, {"stash_type", DType::f16}}});
  EXPECT_EQ(KernelRun(group_kernel(), stash).refusal(), "statistics other than f32");
}

}  // namespace
}  // namespace autograph

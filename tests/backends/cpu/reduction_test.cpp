// The reductions against the reference, over every set of axes.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

// Axes whose bits are set in `mask`, every other one counted from the end.
Tensor axes_of(size_t mask, size_t rank) {
  std::vector<int64_t> axes;
  for (size_t a = 0; a < rank; ++a) {
    if ((mask >> a & 1) != 0) axes.push_back(static_cast<int64_t>(a) - (a % 2 == 0 ? 0 : static_cast<int64_t>(rank)));
  }
  return Tensor::vector(axes);
}

OpSample reduction_of(const Tensor& x, const Tensor& axes, bool keepdims = true) {
  return {.inputs = {x, axes}, .attributes = {{"keepdims", int64_t{keepdims}}}};
}

TEST(Reduction, EverySetOfAxesOfOddShapes) {
  const std::vector<Dims> shapes{{1},           {130},           {5, 33},  {3, 1, 7}, {4, 3, 17},
                                 {2, 5, 3, 19}, {3, 2, 1, 3, 9}, {131, 3}, {2, 70, 8}};
  on_every_isa([&] {
    Random random(1);
    for (const KernelDef& kernel : simd::reduction_kernels()) {
      SCOPED_TRACE(std::string(kernel.op));
      for (const Dims& dims : shapes) {
        const Tensor x = draw_tensor(random, DType::f32, dims, 0.5, 1.5);
        for (size_t mask = 0; mask < size_t{1} << dims.size(); ++mask) {
          const OpSample sample = reduction_of(x, axes_of(mask, dims.size()), mask % 2 == 0);
          expect_reference(kernel, KernelCase(get_op(kernel.op), sample));
        }
      }
    }
  });
}

TEST(Reduction, LargeTensorsOnTwoThreads) {
  Random random(2);
  const std::vector<Dims> shapes{{3, 40000}, {50, 1300}, {7, 65, 11, 13}};
  for (const KernelDef& kernel : simd::reduction_kernels()) {
    SCOPED_TRACE(std::string(kernel.op));
    const bool is_product = kernel.op == "reduce_prod";
    const bool is_logarithm = kernel.op == "reduce_log_sum";
    for (const Dims& dims : shapes) {
      const Tensor x = draw_tensor(random, DType::f32, dims,
                                   is_product     ? 0.99
                                   : is_logarithm ? 0.1
                                                  : -2,
                                   is_product ? 1.01 : 2);
      for (size_t mask = 1; mask < size_t{1} << dims.size(); ++mask) {
        const KernelCase test(get_op(kernel.op), reduction_of(x, axes_of(mask, dims.size())), {2});
        expect_reference(kernel, test, {1e-5, 1e-5});
      }
    }
  }
}

TEST(Reduction, WithoutAxesAllOrNone) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {3, 5}, -2, 2);
  for (const KernelDef& kernel : simd::reduction_kernels()) {
    if (kernel.op == "reduce_log_sum") continue;  // of negative numbers there is none
    SCOPED_TRACE(std::string(kernel.op));
    for (const int64_t noop : {0, 1}) {
      const Attributes attributes{{"noop_with_empty_axes", noop}};
      expect_reference(kernel, KernelCase(get_op(kernel.op), {{x}, attributes}));
      expect_reference(kernel,
                       KernelCase(get_op(kernel.op), {{x, Tensor::vector(std::vector<int64_t>{})}, attributes}));
    }
  }
}

TEST(Reduction, NanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  on_every_isa([&] {
    Random random(4);
    for (const std::vector<float>& specials :
         {std::vector{nan}, std::vector{inf}, std::vector{-inf}, std::vector{inf, -inf}, std::vector{nan, inf, 3.0F}}) {
      Tensor x = draw_tensor(random, DType::f32, {40, 41}, 0.5, 2);
      for (size_t i = 0; i < specials.size(); ++i) {
        for (const size_t at : {7, 77, 41 * 35 + 40}) x.mutable_data<float>()[at + i * 41] = specials[i];
      }
      for (const KernelDef& kernel : simd::reduction_kernels()) {
        SCOPED_TRACE(std::string(kernel.op));
        for (const size_t mask : {1, 2, 3}) {
          expect_reference(kernel, KernelCase(get_op(kernel.op), reduction_of(x, axes_of(mask, 2))));
        }
      }
    }
  });
}

// The sum of a million of equal numbers is as exact as one of them.
TEST(Reduction, NanInShortRows) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  on_every_isa([&] {
    Random random(5);
    Tensor x = draw_tensor(random, DType::f32, {150, 3}, 0.5, 2);
    const std::vector<float> specials{nan, inf, -inf, 1, nan, nan, -inf, inf, inf};
    std::copy(specials.begin(), specials.end(), x.mutable_data<float>() + 3 * 70);
    for (const KernelDef& kernel : simd::reduction_kernels()) {
      SCOPED_TRACE(std::string(kernel.op));
      expect_reference(kernel, KernelCase(get_op(kernel.op), reduction_of(x, axes_of(2, 2)), {2}));
    }
  });
}

TEST(Reduction, SumsDoNotLoseWhatIsSmall) {
  const Tensor x = Tensor::of<float>({1 << 20, 1}, std::vector<float>(1 << 20, 0.1F));
  for (const KernelDef& kernel : simd::reduction_kernels()) {
    if (kernel.op != "reduce_sum" && kernel.op != "reduce_mean" && kernel.op != "reduce_l1") continue;
    expect_reference(kernel, KernelCase(get_op(kernel.op), reduction_of(x, axes_of(1, 2))), {1e-7, 0});
  }
}

TEST(Reduction, SaysWhatItRefuses) {
  Random random(5);
  const auto refusal = [](const OpSample& sample) {
    return KernelRun(simd::reduction_kernels()[0], KernelCase(reduce_sum_def(), sample)).refusal();
  };
  EXPECT_EQ(refusal({{draw_tensor(random, DType::f64, {3})}}), "only f32");
  EXPECT_EQ(refusal({{Tensor::empty(DType::f32, {0, 3})}}), "a tensor without elements");
}

}  // namespace
}  // namespace autograph

// Searches and running sums along an axis against the reference: arg_max, arg_min, hardmax, top_k, cum_sum and
// lp_normalization.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

const std::vector<Dims> kShapes{{1}, {37}, {3, 5}, {1, 1, 200}, {4, 67, 3}, {2, 3, 150}, {5, 9, 2, 33}};

enum class Values { any, few, special };

// `few` have many ties; `special` have NaN, infinities and both zeros among them.
Tensor tensor_of(Random& random, const Dims& dims, Values values) {
  Tensor x = draw_tensor(random, DType::f32, dims, -4, 4);
  const float specials[]{kNan, kInfinite, -kInfinite, 0.0F, -0.0F, -kNan, 1e-40F};
  for (int64_t i = 0; i < x.num_elements() && values != Values::any; ++i) {
    float& element = x.mutable_data<float>()[i];
    element = static_cast<float>(static_cast<int>(element));
    if (values == Values::special && draw(random, 0, 5) == 0) element = specials[draw(random, 0, 6)];
  }
  return x;
}

// Calls check(x, axis, threads) for tensors of all kinds, along every axis.
template <class Check>
void for_tensors(const Check& check) {
  Random random(1);
  for (const Dims& dims : kShapes) {
    for (const Values values : {Values::any, Values::few, Values::special}) {
      const Tensor x = tensor_of(random, dims, values);
      const auto rank = static_cast<int64_t>(dims.size());
      for (int64_t axis = -1; axis < rank; ++axis) check(x, axis, 1);
    }
  }
  const Tensor large = tensor_of(random, {7, 300, 31}, Values::few);
  for (const int64_t axis : {0, 1, 2}) check(large, axis, 2);
}

TEST(AlongAxis, ArgExtremes) {
  on_every_isa([] {
    for_tensors([](const Tensor& x, int64_t axis, int threads) {
      for (const KernelDef& kernel : simd::arg_extreme_kernels()) {
        SCOPED_TRACE(std::string(kernel.op));
        if (kernel.op == "hardmax") continue;
        for (const int64_t flags : {0, 1, 2, 3}) {
          const Attributes attributes{{"axis", axis}, {"keepdims", flags % 2}, {"select_last_index", flags / 2}};
          expect_reference(kernel, KernelCase(get_op(kernel.op), {{x}, attributes}, {threads}));
        }
      }
    });
  });
}

TEST(AlongAxis, Hardmax) {
  on_every_isa([] {
    for_tensors([](const Tensor& x, int64_t axis, int threads) {
      const KernelDef kernel = simd::arg_extreme_kernels()[2];
      expect_reference(kernel, KernelCase(hardmax_def(), {{x}, {{"axis", axis}}}, {threads}));
    });
  });
}

void expect_top_k(const Tensor& x, int64_t k, int64_t axis, int threads = 1) {
  for (const int64_t flags : {0, 1, 2, 3}) {
    const Attributes attributes{{"axis", axis}, {"largest", flags % 2}, {"sorted", flags / 2}};
    const KernelCase test(top_k_def(), {{x, Tensor::vector(std::vector<int64_t>{k})}, attributes}, {threads});
    expect_reference(simd::top_k_kernel(), test, {0, 0});
  }
}

TEST(AlongAxis, TopK) {
  on_every_isa([] {
    for_tensors([](const Tensor& x, int64_t axis, int threads) {
      const auto rank = static_cast<int64_t>(x.dims().size());
      const int64_t extent = x.dims()[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
      for (const int64_t k : {int64_t{1}, (extent + 1) / 2, extent}) expect_top_k(x, k, axis, threads);
    });
  });
}

// Long rows, so that candidates are dropped: in any order, ascending, descending, and nearly all alike.
TEST(AlongAxis, TopKOfLongRows) {
  on_every_isa([] {
    Random random(2);
    const int64_t extent = 3001;
    for (const Values values : {Values::any, Values::few, Values::special}) {
      const Tensor x = tensor_of(random, {2, extent}, values);
      for (const int64_t k : {1, 7, 400, 2999}) expect_top_k(x, k, 1);
    }
    Tensor sorted = Tensor::empty(DType::f32, {2, extent});
    for (int64_t i = 0; i < 2 * extent; ++i) sorted.mutable_data<float>()[i] = static_cast<float>(i < extent ? i : -i);
    for (const int64_t k : {1, 100}) expect_top_k(sorted, k, 1);
    const Tensor nan = Tensor::of<float>({extent}, std::vector<float>(extent, kNan));
    expect_top_k(nan, 5, 0);
  });
}

TEST(AlongAxis, CumulativeSums) {
  for_tensors([](const Tensor& x, int64_t axis, int threads) {
    for (const int64_t flags : {0, 1, 2, 3}) {
      const OpSample sample{{x, Tensor::scalar(axis)}, {{"exclusive", flags % 2}, {"reverse", flags / 2}}};
      expect_reference(cumulative_sum_kernel(), KernelCase(cum_sum_def(), sample, {threads}));
    }
  });
}

TEST(AlongAxis, LpNormalization) {
  for_tensors([](const Tensor& x, int64_t axis, int threads) {
    for (const int64_t p : {1, 2}) {
      const KernelCase test(lp_normalization_def(), {{x}, {{"axis", axis}, {"p", p}}}, {threads});
      expect_reference(lp_normalization_kernel(), test);
    }
  });
  // Norms beyond what f32 holds.
  for (const float size : {1e-42F, 1e38F}) {
    const Tensor x = Tensor::of<float>({2, 3}, {size, size, -size, 0, size, 0});
    for (const int64_t axis : {0, 1}) {
      expect_reference(lp_normalization_kernel(), KernelCase(lp_normalization_def(), {{x}, {{"axis", axis}}}));
    }
  }
}

TEST(AlongAxis, SaysWhatItRefuses) {
  Random random(3);
  const Tensor wide = draw_tensor(random, DType::f64, {3, 4});
  EXPECT_EQ(KernelRun(simd::arg_extreme_kernels()[0], KernelCase(arg_max_def(), {{wide}})).refusal(), "only f32");
  const Tensor x = draw_tensor(random, DType::f32, {3, 4});
  const KernelCase none(top_k_def(), {{x, Tensor::vector(std::vector<int64_t>{0})}});
  EXPECT_EQ(KernelRun(simd::top_k_kernel(), none).refusal(), "k is 0");
}

}  // namespace
}  // namespace autograph

// dynamic_quantize_linear's kernel gives the reference's bytes, whatever the range.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/quantize/dynamic_quantize.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

void expect_bytes_of_reference(Tensor x, int threads = 1) {
  const OpSample sample{.inputs = {std::move(x)}};
  expect_reference(dynamic_quantize_kernel(), KernelCase(*find_op("dynamic_quantize_linear"), sample, {threads}),
                   {0, 0});
}

TEST(DynamicQuantize, AgreesWithTheReference) {
  Random random(5);
  for (const auto& [low, high] : {std::pair{-3.0, 5.0}, {0.5, 7.0}, {-9.0, -1.0}, {-1e-30, 1e-30}, {0.0, 0.0}}) {
    for (const int64_t count : {1, 15, 16, 37, 1000}) {
      expect_bytes_of_reference(draw_tensor(random, DType::f32, {count}, low, high));
    }
  }
  expect_bytes_of_reference(draw_tensor(random, DType::f32, {3, 50001}, -1, 2), 2);
  expect_bytes_of_reference(Tensor::zeros(DType::f32, {2, 0}));
}

TEST(DynamicQuantize, RoundsTiesToEven) {
  std::vector<float> x{0, 255};
  for (int i = 0; i < 255; ++i) x.push_back(static_cast<float>(i) + 0.5F);
  expect_bytes_of_reference(Tensor::of<float>({static_cast<int64_t>(x.size())}, x));
}

TEST(DynamicQuantize, TakesNumbersThatAreNotFinite) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  constexpr float kMax = std::numeric_limits<float>::max();
  for (const float odd : {kInf, -kInf, std::nanf(""), kMax}) {
    expect_bytes_of_reference(Tensor::of<float>({5}, {1, odd, -2, -kMax, 3}));
    expect_bytes_of_reference(Tensor::of<float>({4}, {1, odd, -2, 3}));
  }
}

}  // namespace
}  // namespace autograph

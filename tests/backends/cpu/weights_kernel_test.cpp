// Kernels of our own whose weights were written: they pack them again where they are, whichever of them were.
#include "backends/cpu/weights_kernel.h"

#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "support/compare.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

OpSample sample_of(const std::vector<Dims>& inputs, Attributes attributes = {}) {
  Random random(7);
  OpSample sample;
  for (const Dims& dims : inputs) sample.inputs.emplace_back(draw_tensor(random, DType::f32, dims, -1, 1));
  sample.attributes = std::move(attributes);
  return sample;
}

void expect_renews(std::string_view kernel, const OpDef& op, const OpSample& sample) {
  SCOPED_TRACE(std::string(kernel));
  for (const int threads : {1, 2}) expect_every_variant_renews(cpu_kernel(kernel, op.name), op, sample, threads);
}

TEST(WeightsKernel, ConvolutionsPackAnew) {
  const Dims x{1, 32, 6, 6}, bias{32};
  const std::vector<int64_t> two{2, 2};
  expect_renews("cpu.winograd_conv_simd", conv_def(), sample_of({x, {32, 32, 3, 3}, bias}));
  expect_renews("cpu.winograd_conv_simd", conv_def(), sample_of({x, {32, 32, 3, 3}}));
  expect_renews("cpu.pointwise_conv_simd", conv_def(), sample_of({x, {32, 32, 1, 1}, bias}));
  expect_renews("cpu.grouped_conv_simd", conv_def(), sample_of({x, {32, 1, 3, 3}, bias}, {{"group", int64_t{32}}}));
  expect_renews("cpu.tap_conv_simd", conv_def(), sample_of({x, {32, 32, 3, 3}, bias}, {{"dilations", two}}));
  expect_renews("cpu.tap_conv_simd", conv_transpose_def(), sample_of({x, {32, 16, 3, 3}}, {{"strides", two}}));
}

TEST(WeightsKernel, ProductsPackAnew) {
  expect_renews("cpu.weight_product_simd", matmul_def(), sample_of({{5, 40}, {40, 24}}));
  expect_renews("cpu.weight_product_simd", gemm_def(), sample_of({{5, 40}, {40, 24}, {24}}));
  expect_renews("cpu.weight_product_simd", gemm_def(), sample_of({{5, 40}, {24, 40}, {24}}, {{"transB", int64_t{1}}}));
}

// Biases, which each run reads, are written with them.
TEST(WeightsKernel, RecurrentLayersPackAnew) {
  expect_renews("cpu.lstm_simd", lstm_def(), sample_of({{3, 2, 9}, {1, 40, 9}, {1, 40, 10}, {1, 80}}));
  expect_renews(
      "cpu.gru_simd", gru_def(),
      sample_of({{3, 2, 9}, {2, 30, 9}, {2, 30, 10}, {2, 60}}, {{"direction", std::string("bidirectional")}}));
}

// Of weights that are packed together one may be written alone.
TEST(WeightsKernel, KeepsWhatWasNotWritten) {
  constexpr size_t kR = 2;
  const OpSample old_sample = sample_of({{3, 2, 9}, {1, 40, 9}, {1, 40, 10}});
  OpSample new_sample = old_sample;
  Random random(8);
  new_sample.inputs[kR] = draw_tensor(random, DType::f32, {1, 40, 10}, -1, 1);
  std::vector<StateContents> written(3);
  written[kR] = {new_sample.inputs[kR].tensor(), 1};
  PackedConstants packed;
  for (PackedConstants* shared : {&packed, static_cast<PackedConstants*>(nullptr)}) {
    SCOPED_TRACE(shared ? "shared" : "alone");
    const KernelSetup setup{.constant_weights = true, .packed = shared};
    const KernelCase before(lstm_def(), old_sample, setup), after(lstm_def(), new_sample, setup);
    const Prepared prepared = cpu_kernel("cpu.lstm_simd", "lstm").prepare(before.call());
    // Nothing but a shared form keeps the constants that it was made of.
    EXPECT_EQ(dynamic_cast<PackingKernel&>(*prepared.kernel).renew(written, shared), shared != nullptr);
    if (shared) expect_right(*prepared.kernel, after);
  }
}

}  // namespace
}  // namespace autograph

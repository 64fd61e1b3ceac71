// Kernels around oneDNN primitives whose weights were written: they pack them again where they are.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "runtime/packing_kernel.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

constexpr size_t kBias = 2;

// A convolution of 32 channels with a bias, as it is when its weights are those of `seed`.
OpSample sample_of(int seed) {
  Random x(1), weights(seed);
  OpSample sample;
  sample.inputs = {draw_tensor(x, DType::f32, {1, 32, 6, 6}, -1, 1),
                   draw_tensor(weights, DType::f32, {32, 32, 3, 3}, -1, 1),
                   draw_tensor(weights, DType::f32, {32}, -1, 1)};
  return sample;
}

std::vector<KernelVariant> row_major_variants(const KernelCase& of) {
  std::vector<KernelVariant> variants = onednn::conv_kernel().variants(of.call());
  std::erase_if(variants, [](const KernelVariant& v) { return !v.is_row_major(); });
  return variants;
}

TEST(RenewedWeights, ArePackedInPlaceOfTheOldOnes) {
  expect_every_variant_renews(onednn::conv_kernel(), conv_def(), sample_of(2), 1);
}

TEST(RenewedWeights, LeaveAloneWhatIsTheSame) {
  PackedConstants packed;
  const OpSample old_sample = sample_of(2);
  OpSample new_sample = old_sample;
  new_sample.inputs[kBias] = sample_of(3).inputs[kBias];
  KernelSetup setup{.constant_weights = true, .packed = &packed};
  const KernelVariant first = row_major_variants(KernelCase(conv_def(), old_sample, setup)).at(0);
  setup.variant = &first;
  const KernelCase before(conv_def(), old_sample, setup), after(conv_def(), new_sample, setup);
  const std::unique_ptr<Kernel> kernel = onednn::conv_kernel().prepare(before.call()).kernel;
  const size_t made = packed.num_made();
  std::vector<StateContents> written(3);
  written[kBias] = {new_sample.inputs[kBias].tensor(), 1};
  EXPECT_TRUE(dynamic_cast<PackingKernel&>(*kernel).renew(written, &packed));
  EXPECT_EQ(packed.num_made(), made);
  expect_right(*kernel, after, {1e-3, 1e-4});
}

}  // namespace
}  // namespace autograph

// Kernels around oneDNN primitives whose weights were written: they pack them again where they are.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "runtime/memory/packed_constants.h"
#include "runtime/packing_kernel.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

constexpr size_t kWeights = 1, kBias = 2;

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

// Expects a run of `kernel` on the inputs of `now` to be right.
void expect_right(const Kernel& kernel, const KernelCase& now) {
  const std::unique_ptr<KernelState> state = kernel.new_state();
  Tensor scratch = Tensor::empty(DType::u8, {static_cast<int64_t>(kernel.scratch_bytes())});
  const Tensor output = Tensor::empty(DType::f32, now.call().output_dims(0));
  const TensorView view = output.view();
  kernel.run({now.inputs(), {&view, 1}, scratch.mutable_raw(), state.get()});
  EXPECT_EQ(difference(output, now.reference()[0], {1e-3, 1e-4}), "");
}

TEST(RenewedWeights, ArePackedInPlaceOfTheOldOnes) {
  PackedConstants packed;
  const OpSample old_sample = sample_of(2), new_sample = sample_of(3);
  KernelSetup setup{.constant_weights = true, .packed = &packed};
  const std::vector<KernelVariant> variants = row_major_variants(KernelCase(conv_def(), old_sample, setup));
  ASSERT_FALSE(variants.empty());
  for (const KernelVariant& variant : variants) {
    setup.variant = &variant;
    const KernelCase before(conv_def(), old_sample, setup), after(conv_def(), new_sample, setup);
    const std::unique_ptr<Kernel> kernel = onednn::conv_kernel().prepare(before.call()).kernel;
    auto* const packing = dynamic_cast<PackingKernel*>(kernel.get());
    ASSERT_NE(packing, nullptr) << variant.name;
    expect_right(*kernel, before);
    const size_t held = packed.num_held(), weight_bytes = kernel->weight_bytes();
    std::vector<StateContents> written(3);
    for (const size_t k : {kWeights, kBias}) written[k] = {new_sample.inputs[k].tensor(), 1};
    EXPECT_TRUE(packing->renew(written, &packed)) << variant.name;
    expect_right(*kernel, after);
    EXPECT_EQ(packed.num_held(), held) << variant.name;
    EXPECT_EQ(kernel->weight_bytes(), weight_bytes) << variant.name;
  }
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
  expect_right(*kernel, after);
}

}  // namespace
}  // namespace autograph

// slice, expand and pad on the CPU against the reference, with tensors large enough for rows and threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/cpu_kernels.h"
#include "ops/op_list.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/run_kernel.h"

namespace autograph {
namespace {

KernelDef kernel_for(const OpDef& op) {
  const std::vector<KernelDef> kernels = box_copy_kernels();
  return *std::find_if(kernels.begin(), kernels.end(), [&](const KernelDef& def) { return def.op == op.name; });
}

void expect_reference(const OpDef& op, const OpSample& sample) {
  for (const int threads : {1, 2}) {
    const KernelCase test(op, sample, {threads, true});
    KernelRun run(kernel_for(op), test);
    ASSERT_EQ(run.refusal(), "");
    run.run();
    EXPECT_EQ(difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {0, 0}), "");
  }
}

TEST(BoxCopy, SlicesOfEveryStepAndWidth) {
  Random random(1);
  for (const DType dtype : {DType::f32, DType::u8, DType::i64, DType::f16}) {
    const Tensor x = draw_tensor(random, dtype, {3, 70, 41, 8}, 0, 200);
    const auto slice = [&](std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                           std::vector<int64_t> steps) {
      expect_reference(slice_def(), {{x, Tensor::vector(starts), Tensor::vector(ends), Tensor::vector(axes),
                                      Tensor::vector(steps)}});
    };
    slice({10}, {60}, {1}, {1});
    slice({-1}, {-1000}, {2}, {-1});
    slice({0, 1, 7}, {3, 1000, 0}, {0, 2, 3}, {2, 3, -2});
    slice({5}, {6}, {-3}, {int64_t{1} << 62});
  }
}

TEST(BoxCopy, PadsWithPositiveAndNegativeNumbers) {
  Random random(2);
  const Tensor x = draw_tensor(random, DType::f32, {2, 16, 33, 30});
  const Tensor pads = Tensor::vector({0, 0, 1, 2, 0, 0, 3, -4});
  expect_reference(pad_def(), {{x, pads}, {{"mode", std::string("constant")}}});
  expect_reference(pad_def(), {{x, pads, Tensor::scalar(-1.5F)}, {{"mode", std::string("constant")}}});
  expect_reference(pad_def(), {{x, Tensor::vector({-3, 4}), Datum(), Tensor::vector({1})}});
}

TEST(BoxCopy, ExpandsAxesAtBothEnds) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {30, 1, 40});
  expect_reference(expand_def(), {{x, Tensor::vector({2, 1, 20, 40})}});
  expect_reference(expand_def(), {{draw_tensor(random, DType::i64, {5, 1}), Tensor::vector({5, 300})}});
}

// Pads without channels move whole pixels or blocks: the same numbers under another order.
TEST(BoxCopy, PadsInEveryLayout) {
  Random random(4);
  const Dims dims{2, 16, 5, 6};
  const Tensor pads = Tensor::vector({0, 0, 1, 0, 0, 0, 2, 3});
  const KernelCase plain(pad_def(), {{draw_tensor(random, DType::f32, dims), pads}}, {1, true});
  const std::vector<KernelVariant> variants = kernel_for(pad_def()).variants(plain.call());
  ASSERT_EQ(variants.size(), 4U);
  for (const KernelVariant& variant : variants) {
    // Channel c of every pixel is c, so that the order of the pixels does not show, and that of the channels does.
    std::vector<float> x(2 * 16 * 30);
    const auto channel_at = [&](int64_t i, int64_t pixels) {
      const int64_t block = variant.output(0) == Layout::channels_last ? 16 : channel_block(variant.output(0));
      return static_cast<float>(1 + i / (block * pixels) % (16 / block) * block + i % block);
    };
    for (size_t i = 0; i < x.size(); ++i) x[i] = channel_at(static_cast<int64_t>(i), 30);
    const KernelCase test(pad_def(), {{Tensor::of<float>(dims, x), pads}}, {1, true, &variant});
    KernelRun run(kernel_for(pad_def()), test);
    run.run();
    int64_t zeros = 0;
    for (int64_t i = 0; i < run.outputs()[0].num_elements(); ++i) {
      const float element = run.outputs()[0].data<float>()[i];
      zeros += element == 0;
      if (element == 0) continue;
      EXPECT_EQ(element, channel_at(i, 72)) << to_string(variant.output(0)) << " element " << i;
    }
    EXPECT_EQ(zeros, 2 * 16 * (72 - 30));
  }
}

}  // namespace
}  // namespace autograph

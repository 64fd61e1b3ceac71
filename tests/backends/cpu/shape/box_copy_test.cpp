// slice, expand and pad on the CPU against the reference, with tensors large enough for rows and threads.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/run_kernel.h"

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

// Pads in front, behind, both, cut off at one side and both, of every axis, with values of several bytes.
TEST(BoxCopy, PadsOneAxis) {
  Random random(9);
  for (const DType dtype : {DType::f32, DType::u8, DType::i64, DType::f16}) {
    const Tensor x = draw_tensor(random, dtype, {3, 5, 70, 64}, 0, 200), value = draw_tensor(random, dtype, {}, 1, 100);
    for (const int64_t axis : {0, 1, 2, 3}) {
      for (const auto& [begin, end] :
           std::vector<std::pair<int64_t, int64_t>>{{0, 3}, {4, 0}, {2, 1}, {-1, 2}, {3, -2}}) {
        const Tensor pads = Tensor::vector({begin, end}), axes = Tensor::vector({axis});
        expect_reference(pad_def(), {{x, pads, value, axes}});
        expect_reference(pad_def(), {{x, pads, Datum(), axes}});
      }
    }
  }
}

TEST(BoxCopy, PadsWhatHasNoElements) {
  const Tensor x = Tensor::zeros(DType::f32, {1, 4, 0, 64});
  expect_reference(pad_def(), {{x, Tensor::vector({2, 3}), Tensor::scalar(0.5F), Tensor::vector({2})}});
}

TEST(BoxCopy, ExpandsAxesAtBothEnds) {
  Random random(3);
  const Tensor x = draw_tensor(random, DType::f32, {30, 1, 40});
  expect_reference(expand_def(), {{x, Tensor::vector({2, 1, 20, 40})}});
  expect_reference(expand_def(), {{draw_tensor(random, DType::i64, {5, 1}), Tensor::vector({5, 300})}});
}

void expect_reference_in_layouts(const OpDef& op, const OpSample& sample, size_t num_variants) {
  const KernelCase plain(op, sample, {1, true});
  ASSERT_EQ(kernel_for(op).variants(plain.call()).size(), num_variants);
  expect_every_variant(kernel_for(op), op, sample, 2, {0, 0});
}

TEST(BoxCopy, PadsInEveryLayout) {
  Random random(4);
  const Tensor x = draw_tensor(random, DType::f32, {2, 16, 5, 6});
  expect_reference_in_layouts(pad_def(), {{x, Tensor::vector({0, 0, 1, 0, 0, 0, 2, 3})}}, 4);
  // Channels too: no whole blocks.
  expect_reference_in_layouts(pad_def(), {{x, Tensor::vector({1, 2, 1, 0, 0, -3, 2, 3})}}, 2);
}

TEST(BoxCopy, SlicesInEveryLayout) {
  Random random(5);
  const Tensor x = draw_tensor(random, DType::f32, {3, 16, 9, 7});
  const auto slice = [&](std::vector<int64_t> starts, std::vector<int64_t> ends, std::vector<int64_t> axes,
                         std::vector<int64_t> steps, size_t num_variants) {
    expect_reference_in_layouts(
        slice_def(), {{x, Tensor::vector(starts), Tensor::vector(ends), Tensor::vector(axes), Tensor::vector(steps)}},
        num_variants);
  };
  slice({1, 1}, {100, 100}, {2, 3}, {1, 1}, 4);
  slice({2, 8, 0}, {0, -100, 5}, {0, 2, 3}, {-1, -3, 2}, 4);
  slice({3}, {14}, {1}, {2}, 2);
  slice({-1, 2}, {-100, 3}, {1, 3}, {-1, 1}, 2);
}

}  // namespace
}  // namespace autograph

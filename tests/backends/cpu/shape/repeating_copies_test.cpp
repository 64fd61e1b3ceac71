// tile, pad with elements of the input and resize to the nearest element on the CPU against the reference.
#include <gtest/gtest.h>

#include <algorithm>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

std::string refusal_or_difference(const OpDef& op, const OpSample& sample, int threads) {
  const std::vector<KernelDef> kernels = repeating_copy_kernels();
  const auto def = std::find_if(kernels.begin(), kernels.end(), [&](const KernelDef& k) { return k.op == op.name; });
  const KernelCase test(op, sample, {threads, true});
  KernelRun run(*def, test);
  if (!run.refusal().empty()) return run.refusal();
  run.run();
  return difference(Datum(run.outputs()[0]), Datum(test.reference()[0]), {0, 0});
}

void expect_reference(const OpDef& op, const OpSample& sample) {
  for (const int threads : {1, 2}) EXPECT_EQ(refusal_or_difference(op, sample, threads), "");
}

constexpr DType kSizes[]{DType::u8, DType::f16, DType::f32, DType::i64};

TEST(RepeatingCopies, TileRepeatsEveryAxis) {
  Random random(1);
  for (const DType dtype : kSizes) {
    const Tensor x = draw_tensor(random, dtype, {3, 5, 1, 70}, 0, 100);
    for (const std::vector<int64_t>& repeats :
         std::vector<std::vector<int64_t>>{{1, 1, 1, 1}, {2, 3, 16, 1}, {1, 1, 50, 3}, {100, 1, 1, 1}, {1, 0, 2, 1}}) {
      expect_reference(tile_def(), {{x, Tensor::vector(repeats)}});
    }
  }
  expect_reference(tile_def(), {{draw_tensor(random, DType::f32, {1}), Tensor::vector({100001})}});
  expect_reference(tile_def(), {{draw_tensor(random, DType::f32, {1, 50001}), Tensor::vector({3, 1})}});
  expect_reference(tile_def(), {{draw_tensor(random, DType::f32, {}), Tensor::vector({})}});
  expect_reference(tile_def(), {{draw_tensor(random, DType::f32, {0, 3}), Tensor::vector({2, 2})}});
}

TEST(RepeatingCopies, PadRepeatsElementsInEveryMode) {
  Random random(2);
  for (const std::string mode : {"reflect", "edge", "wrap"}) {
    const Attributes attributes{{"mode", mode}};
    for (const DType dtype : kSizes) {
      const Tensor x = draw_tensor(random, dtype, {2, 7, 33, 31}, 0, 100);
      expect_reference(pad_def(), {{x, Tensor::vector({0, 0, 3, 3, 0, 0, 3, 3})}, attributes});
      expect_reference(pad_def(), {{x, Tensor::vector({1, 2, -3, 70, 0, 20, 100, -4})}, attributes});
      expect_reference(pad_def(), {{x, Tensor::vector({2, 5}), Datum(), Tensor::vector({-3})}, attributes});
    }
    for (int i = 0; i < 50; ++i) {
      OpSample sample = pad_def().sample(random);
      sample.attributes.set("mode", mode);
      expect_reference(pad_def(), sample);
    }
  }
}

TEST(RepeatingCopies, ResizePicksTheNearestElement) {
  Random random(3);
  for (const DType dtype : kSizes) {
    const Tensor x = draw_tensor(random, dtype, {2, 9, 33, 31}, 0, 100);
    for (const std::vector<float>& scales :
         std::vector<std::vector<float>>{{1, 1, 2, 2}, {1, 1, 1.7F, 0.4F}, {1, 2, 1, 3}, {2, 0.5F, 1, 1}}) {
      expect_reference(resize_def(), {{x, Datum(), Tensor::of<float>({4}, scales)}});
    }
    expect_reference(resize_def(), {{x, Datum(), Datum(), Tensor::vector({2, 9, 100, 77})}});
  }
  int taken = 0;
  for (int i = 0; i < 400; ++i) {
    const OpSample sample = resize_def().sample(random);
    if (sample.attributes.text("mode") != "nearest") continue;
    const std::string text = refusal_or_difference(resize_def(), sample, 1);
    EXPECT_TRUE(text.empty() || text == "a tensor without elements") << text;
    taken += text.empty();
  }
  EXPECT_GT(taken, 50);
}

TEST(RepeatingCopies, ResizeDoublesRowsOfAnyLength) {
  Random random(5);
  for (const Dims& dims :
       std::vector<Dims>{{1, 1, 1, 1}, {2, 3, 5, 7}, {1, 4, 3, 8}, {2, 60, 9, 20}, {3, 2, 40, 161}}) {
    const Tensor twice = Tensor::of<float>({4}, {1, 1, 2, 2});
    for (const DType dtype : {DType::f32, DType::f64}) {
      expect_reference(resize_def(), {{draw_tensor(random, dtype, dims, 0, 100), Datum(), twice}});
    }
  }
}

TEST(RepeatingCopies, ResizeFillsWhatLiesOutsideOfTheRegion) {
  Random random(4);
  const Attributes attributes{{"coordinate_transformation_mode", std::string("tf_crop_and_resize")},
                              {"extrapolation_value", -7.5F}};
  const Tensor roi = Tensor::of<float>({8}, {0, 0, -0.5F, 0.2F, 1, 1, 0.7F, 1.4F});
  const Tensor sizes = Tensor::vector({2, 9, 60, 70});
  expect_reference(resize_def(), {{draw_tensor(random, DType::f32, {2, 9, 33, 31}), roi, Datum(), sizes}, attributes});
  const OpSample bytes{{draw_tensor(random, DType::u8, {2, 9, 33, 31}, 0, 100), roi, Datum(), sizes}, attributes};
  EXPECT_EQ(refusal_or_difference(resize_def(), bytes, 1), "elements outside of a region, of another dtype than f32");
}

}  // namespace
}  // namespace autograph

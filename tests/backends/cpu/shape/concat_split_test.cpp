// Concat and split along every axis in every layout, against the reference.
#include <gtest/gtest.h>

#include <set>

#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

// Dims of some rank, channels in whole blocks half of the time, also where they are the axis that is cut.
struct Parts {
  explicit Parts(Random& random) : whole{draw(random, 1, 3)}, block(draw_bool(random) ? 16 : 1) {
    whole.push_back(block * draw(random, 1, 3));
    for (int64_t spatial = draw(random, 1, 3); spatial > 0; --spatial) whole.push_back(draw(random, 1, 9));
    axis = draw(random, 0, static_cast<int64_t>(whole.size()) - 1);
    for (int64_t part = draw(random, 1, 4); part > 0; --part) {
      extents.push_back(axis == 1 ? block * draw(random, 1, 2) : draw(random, 1, 6));
    }
    extent() = 0;
    for (const int64_t part : extents) extent() += part;
  }

  int64_t& extent() { return whole[static_cast<size_t>(axis)]; }

  Dims whole;
  int64_t block, axis = 0;
  std::vector<int64_t> extents;
};

TEST(ConcatSplit, EveryAxisInEveryLayout) {
  Random random(1);
  for (int i = 0; i < 60; ++i) {
    Parts parts(random);
    OpSample split{.inputs = {draw_tensor(random, DType::f32, parts.whole), Tensor::vector(parts.extents)},
                   .attributes = {{"axis", parts.axis}},
                   .num_outputs = static_cast<int>(parts.extents.size())};
    OpSample concat{.inputs = {}, .attributes = {{"axis", parts.axis}}};
    for (const int64_t extent : parts.extents) {
      parts.extent() = extent;
      concat.inputs.emplace_back(draw_tensor(random, DType::f32, parts.whole));
    }
    SCOPED_TRACE(i);
    expect_every_variant(concat_kernel(), concat_def(), concat, 1 + i % 2, {0, 0});
    expect_every_variant(split_kernel(), split_def(), split, 1 + i % 2, {0, 0});
  }
}

// As of torch.stack() along the innermost axis, or halves put together one by one.
TEST(ConcatSplit, ManySmallPieces) {
  Random random(3);
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::i64}) {
    for (const std::vector<int64_t>& extents : {std::vector<int64_t>{1, 1},
                                                {1, 2, 1},
                                                {3, 1},
                                                {4, 0, 2},
                                                {1, 7},
                                                {2, 2, 2, 2},
                                                {5, 9},
                                                {17, 40, 3},
                                                {33, 1025}}) {
      for (const int64_t rows : {5, 64, 1000}) {
        int64_t total = 0;
        OpSample concat{.inputs = {}, .attributes = {{"axis", int64_t{-1}}}};
        for (const int64_t extent : extents) {
          total += extent;
          concat.inputs.emplace_back(draw_tensor(random, dtype, {rows, extent}, 0, 100));
        }
        const OpSample split{.inputs = {draw_tensor(random, dtype, {rows, total}, 0, 100), Tensor::vector(extents)},
                             .attributes = {{"axis", int64_t{-1}}},
                             .num_outputs = static_cast<int>(extents.size())};
        expect_reference(concat_kernel(), KernelCase(concat_def(), concat, {2}), {0, 0});
        expect_reference(split_kernel(), KernelCase(split_def(), split, {2}), {0, 0});
      }
    }
  }
}

TEST(ConcatSplit, LayoutsOfEveryAxisAreOffered) {
  Random random(2);
  const Tensor part = draw_tensor(random, DType::f32, {2, 16, 3, 4});
  for (const int64_t axis : {0, 1, 2, 3}) {
    const KernelCase test(concat_def(), {{part, part}, {{"axis", axis}}});
    std::set<Layout> layouts;
    for (const KernelVariant& variant : concat_kernel().variants(test.call())) layouts.insert(variant.output(0));
    EXPECT_EQ(layouts, (std::set{Layout::row_major, Layout::channels_last, Layout::blocked8, Layout::blocked16}));
  }
}

}  // namespace
}  // namespace autograph

// Convolutions of bytes against the reference, bit by bit.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Tensor draw_bytes(Random& random, DType dtype, Dims dims) {
  const double low = dtype == DType::i8 ? -128 : 0;
  return draw_tensor(random, dtype, std::move(dims), low, low + 255);
}

// Windows in one to three dims, groups, and zero points of none, the tensor or each channel.
OpSample random_conv(Random& random, int64_t largest_row) {
  const int64_t rank = draw(random, 1, 3), groups = draw(random, 1, 3);
  Dims x{draw(random, 1, 2), groups * draw(random, 1, 4)}, strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
  Dims w{groups * draw(random, 1, 8), x[1] / groups};
  for (int64_t a = 0; a < rank; ++a) {
    w.push_back(draw(random, 1, 4));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 2));
    for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, 5);
    const int64_t span = (w.back() - 1) * dilations.back() + 1;
    x.push_back(span + draw(random, 0, a + 1 == rank ? largest_row : 6));
  }
  const DType x_dtype = draw_one_of(random, {DType::i8, DType::u8});
  const DType w_dtype = draw_one_of(random, {DType::i8, DType::u8});
  OpSample sample{.inputs = {draw_bytes(random, x_dtype, x), draw_bytes(random, w_dtype, w)},
                  .attributes = {{"group", groups}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}}};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_bytes(random, x_dtype, {}));
  if (sample.inputs.size() == 3 && draw_bool(random)) {
    sample.inputs.emplace_back(draw_bytes(random, w_dtype, draw_bool(random) ? Dims{w[0]} : Dims{}));
  }
  return sample;
}

void expect_same(const OpSample& sample, const KernelSetup& setup) {
  expect_reference(simd::integer_conv_kernel(), KernelCase(conv_integer_def(), sample, setup), {0, 0});
}

TEST(IntegerConv, AnyWindow) {
  with_and_without_vnni([] {
    Random random(1);
    for (int i = 0; i < 200; ++i) {
      SCOPED_TRACE(i);
      expect_same(random_conv(random, 40), {.threads = 1 + i % 3, .constant_weights = draw_bool(random)});
    }
  });
}

// More pixels and channels than are multiplied at a time.
TEST(IntegerConv, LargeImages) {
  on_every_isa([] {
    Random random(2);
    for (const DType dtype : {DType::i8, DType::u8}) {
      const OpSample sample{.inputs = {draw_bytes(random, dtype, {1, 40, 61, 70}),
                                       draw_bytes(random, DType::i8, {9, 40, 3, 3}), draw_bytes(random, dtype, {})},
                            .attributes = {{"pads", Dims{1, 1, 1, 1}}}};
      expect_same(sample, {.threads = 2, .constant_weights = true});
      const OpSample deep{.inputs = {draw_bytes(random, dtype, {1, 130, 9, 30}),
                                     draw_bytes(random, DType::u8, {100, 130, 3, 3}), draw_bytes(random, dtype, {}),
                                     draw_bytes(random, DType::u8, {100})}};
      expect_same(deep, {.threads = 2, .constant_weights = true});
    }
  });
}

}  // namespace
}  // namespace autograph

// conv_integer with a zero point that is computed, against the reference: the same numbers, bit by bit.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

Tensor draw_bytes(Random& random, DType dtype, Dims dims) {
  const double low = dtype == DType::i8 ? -128 : 0;
  return draw_tensor(random, dtype, std::move(dims), low, low + 255);
}

OpSample random_conv(Random& random, int64_t largest_row) {
  const int64_t rank = draw(random, 1, 3), groups = draw(random, 1, 3);
  Dims x{draw(random, 1, 2), groups * draw(random, 1, 4)}, strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
  Dims w{groups * draw(random, 1, 5), x[1] / groups};
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
  OpSample sample{
      .inputs = {draw_bytes(random, x_dtype, x), draw_bytes(random, w_dtype, w), draw_bytes(random, x_dtype, {})},
      .attributes = {{"group", groups}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}}};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_bytes(random, w_dtype, {}));
  return sample;
}

class ConvInteger : public ::testing::Test {
 protected:
  void SetUp() override {
    def_ = cpu_kernel("cpu.conv_integer_onednn", "conv_integer");
    if (def_.name.empty()) GTEST_SKIP() << "a build without oneDNN";
    Random random(1);
    const KernelRun run(def_, KernelCase(conv_integer_def(), random_conv(random, 9)));
    if (run.refusal().starts_with("a CPU without VNNI")) GTEST_SKIP() << run.refusal();
  }

  KernelDef def_;
};

TEST_F(ConvInteger, AnyWindow) {
  Random random(2);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    expect_reference(def_, KernelCase(conv_integer_def(), random_conv(random, 40), {1 + i % 2}), {0, 0});
  }
}

// More pixels than are multiplied at a time.
TEST_F(ConvInteger, LargeImages) {
  Random random(3);
  for (const DType dtype : {DType::i8, DType::u8}) {
    const OpSample sample{.inputs = {draw_bytes(random, dtype, {1, 40, 61, 70}),
                                     draw_bytes(random, dtype, {9, 40, 3, 3}), draw_bytes(random, dtype, {})},
                          .attributes = {{"pads", Dims{1, 1, 1, 1}}}};
    expect_reference(def_, KernelCase(conv_integer_def(), sample, {2}), {0, 0});
  }
}

TEST_F(ConvInteger, SaysWhatItRefuses) {
  Random random(4);
  const auto bytes = [&](Dims dims) { return draw_bytes(random, DType::u8, std::move(dims)); };
  OpSample sample{{bytes({1, 2, 5}), bytes({3, 2, 2}), bytes({}), bytes({3})}};
  EXPECT_EQ(KernelRun(def_, KernelCase(conv_integer_def(), sample)).refusal(), "a zero point per channel");
  sample.inputs.resize(2);
  EXPECT_EQ(KernelRun(def_, KernelCase(conv_integer_def(), sample)).refusal(), "a zero point that is known");
}

}  // namespace
}  // namespace autograph

// 3x3 and 5x5 convolutions by Winograd's algorithm against the reference, in every layout and on every instruction set.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.winograd_conv_simd", op); }

// A random call: images of less than a tile and of many, whole tiles and not, channels that leave half a unit.
OpSample random_conv(Random& random) {
  const int64_t in = 16 * draw(random, 1, 3);
  const int64_t out = 16 * draw(random, 1, 5);
  const int64_t taps = draw_one_of(random, {int64_t{3}, int64_t{3}, int64_t{5}});
  Dims x{draw(random, 1, 2), in}, pads(4, 0);
  for (size_t a = 0; a < 2; ++a) {
    pads[a] = draw(random, 0, taps - 1);
    pads[a + 2] = draw(random, 0, taps - 1);
    x.push_back(std::max<int64_t>(1, taps - pads[a] - pads[a + 2]) + draw(random, 0, 22));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1),
                   draw_tensor(random, DType::f32, {out, in, taps, taps}, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {out}, -1, 1));
  sample.attributes = {{"pads", pads}};
  return sample;
}

TEST(WinogradConv, EveryVariantOnRandomCalls) {
  Random random(21);
  for (int i = 0; i < 40; ++i) {
    const OpSample sample = random_conv(random);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(WinogradConv, ManyTilesInTurns) {
  Random random(22);
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, {2, 128, 40, 37}, -1, 1),
                   draw_tensor(random, DType::f32, {48, 128, 3, 3}, -1, 1)};
  sample.attributes = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  for (const int threads : {1, 2}) expect_every_variant(kernel_for("conv"), conv_def(), sample, threads);
}

TEST(WinogradConv, EpiloguesOnRandomCalls) {
  Random random(23);
  for (int i = 0; i < 20; ++i) {
    const OpSample sample = with_epilogue(random, random_conv(random), i % kNumEpilogues);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

// The points were chosen for it: on normal values no more than three times the error of sums in f32.
TEST(WinogradConv, LosesFewDigits) {
  Random random(24);
  for (const int64_t taps : {3, 5}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 256, 16, 16}, -1, 1),
                     draw_tensor(random, DType::f32, {32, 256, taps, taps}, -1, 1)};
    sample.attributes = {{"pads", std::vector<int64_t>(4, taps / 2)}};
    // Standard deviation of sums of 2304 or 6400 products.
    const double magnitude = taps == 3 ? 16 : 27;
    expect_every_variant(kernel_for("conv"), conv_def(), sample, 2, {0, magnitude * 1e-5});
  }
}

TEST(WinogradConv, RefusesWhatItHasNoLoopsFor) {
  Random random(25);
  const auto refusal = [&](const Dims& w, const Attributes& attributes, KernelSetup setup = {1, true}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 32, 9, 9}, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    sample.attributes = attributes;
    return kernel_for("conv").why_not(KernelCase(conv_def(), sample, setup).call());
  };
  EXPECT_EQ(refusal({32, 32, 3, 3}, {}), "");
  EXPECT_EQ(refusal({32, 32, 5, 5}, {}), "");
  EXPECT_EQ(refusal({32, 32, 3, 5}, {}), "3x3 and 5x5 only");
  EXPECT_EQ(refusal({32, 16, 3, 3}, {{"group", int64_t{2}}}), "groups");
  EXPECT_EQ(refusal({24, 32, 3, 3}, {}), "channels that are no multiple of 16");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {{"strides", std::vector<int64_t>{2, 2}}}), "strides or dilation");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {{"dilations", std::vector<int64_t>{1, 2}}}), "strides or dilation");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {}, {1, false}), "unknown weights");
}

}  // namespace
}  // namespace autograph

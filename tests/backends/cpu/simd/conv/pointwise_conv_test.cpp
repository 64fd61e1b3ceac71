// 1x1 convolutions against the reference, on every instruction set.
#include <gtest/gtest.h>

#include <array>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.pointwise_conv_simd", op); }

// A random call: rows and images, whole tiles of pixels and channels and not, strides that leave pixels out.
OpSample random_conv(Random& random) {
  const int64_t in = draw(random, 1, 70), out = draw(random, 1, 70);
  const size_t axes = static_cast<size_t>(draw(random, 1, 2));
  Dims x{draw(random, 1, 2), in}, w{out, in}, strides;
  for (size_t a = 0; a < axes; ++a) {
    x.push_back(draw(random, 1, 13));
    w.push_back(1);
    strides.push_back(draw(random, 1, 3));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {out}, -1, 1));
  sample.attributes = {{"strides", strides}};
  return sample;
}

TEST(PointwiseConv, EveryVariantOnRandomCalls) {
  Random random(51);
  for (int i = 0; i < 60; ++i) {
    const OpSample sample = random_conv(random);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(PointwiseConv, EpiloguesOnRandomCalls) {
  Random random(52);
  for (int i = 0; i < 40; ++i) {
    const OpSample sample = with_epilogue(random, random_conv(random), i % kNumEpilogues);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

TEST(PointwiseConv, TakesFactorsAndShiftsOfChannelsIntoItsWeights) {
  Random random(61);
  for (int i = 0; i < 12; ++i) {
    const OpSample sample = with_channel_scale(random, random_conv(random), i % 3 != 0, i % 3 != 1);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

// More pixels than a block has, and more input channels: sums are stored and taken up again.
TEST(PointwiseConv, ManyBlocks) {
  Random random(53);
  for (const auto& [in, out, extent] : {std::array<int64_t, 3>{1700, 33, 20}, {48, 20, 61}, {530, 90, 3}}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, in, extent, extent}, -1, 1),
                     draw_tensor(random, DType::f32, {out, in, 1, 1}, -1, 1)};
    for (const int threads : {1, 2, 3}) expect_every_variant(kernel_for("conv"), conv_def(), sample, threads);
    const OpSample with_steps = with_epilogue(random, sample, 1);
    expect_every_variant(kernel_for("fused"), fused_def(), with_steps, 2);
  }
}

// -inf * 0, as in the reference.
TEST(PointwiseConv, SwishOfMinusInfinityIsNoNumber) {
  Random random(15);
  for (const int64_t which : {2, 3}) {
    const OpSample sample = with_infinite_epilogue(random, {1, 32, 5, 7}, {16, 32, 1, 1}, 1, which);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1); });
  }
}

TEST(PointwiseConv, RefusesWhatItHasNoLoopsFor) {
  Random random(54);
  const auto refusal = [&](const Dims& w, const Attributes& attributes, KernelSetup setup = {1, true}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 32, 9, 9}, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    sample.attributes = attributes;
    return kernel_for("conv").why_not(KernelCase(conv_def(), sample, setup).call());
  };
  EXPECT_EQ(refusal({24, 32, 1, 1}, {}), "");
  EXPECT_EQ(refusal({24, 32, 1, 1}, {{"strides", std::vector<int64_t>{2, 3}}}), "");
  EXPECT_EQ(refusal({24, 32, 1, 3}, {}), "1x1 only");
  EXPECT_EQ(refusal({24, 16, 1, 1}, {{"group", int64_t{2}}}), "groups");
  EXPECT_EQ(refusal({24, 32, 1, 1}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}), "pads");
  EXPECT_EQ(refusal({24, 32, 1, 1}, {}, {1, false}), "unknown weights");
}

}  // namespace
}  // namespace autograph

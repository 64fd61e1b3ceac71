// Convolutions in groups of few channels against the reference, in every layout and on every instruction set.
#include <gtest/gtest.h>

#include "autograph/random.h"
#include "backends/cpu/simd/kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.grouped_conv_simd", op); }

// A random call: channels fill whole vectors of every instruction set, or not quite.
OpSample random_conv(Random& random) {
  const int64_t size =
      draw_one_of(random, {int64_t{1}, int64_t{1}, int64_t{2}, int64_t{4}, int64_t{8}, int64_t{16}, int64_t{32}});
  const int64_t channels = (std::max<int64_t>(2, 16 / size) + draw(random, 0, 3)) * size;
  const size_t rank = draw(random, 0, 5) == 0 ? 1 : 2;
  Dims x{draw(random, 1, 2), channels}, w{channels, size}, strides, pads(2 * rank, 0);
  for (size_t a = 0; a < rank; ++a) {
    w.push_back(a + 1 == rank ? draw_one_of(random, {int64_t{3}, int64_t{5}, int64_t{7}}) : draw(random, 1, 5));
    strides.push_back(a + 1 == rank ? draw(random, 1, 2) : draw(random, 1, 3));
    pads[a] = draw(random, 0, w.back() - 1);
    pads[a + rank] = draw(random, 0, w.back() - 1);
    x.push_back(std::max<int64_t>(1, w.back() - pads[a] - pads[a + rank]) + draw(random, 0, 17));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {channels}, -1, 1));
  sample.attributes = {{"group", channels / size}, {"strides", strides}, {"pads", pads}};
  return sample;
}

TEST(GroupedConv, EveryVariantOnRandomCalls) {
  Random random(11);
  for (int i = 0; i < 120; ++i) {
    const OpSample sample = random_conv(random);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 2); });
  }
}

TEST(GroupedConv, EpiloguesOnRandomCalls) {
  Random random(12);
  for (int i = 0; i < 60; ++i) {
    const OpSample sample = with_epilogue(random, random_conv(random), i % kNumEpilogues);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

TEST(GroupedConv, TakesFactorsAndShiftsOfChannelsIntoItsWeights) {
  Random random(61);
  for (int i = 0; i < 12; ++i) {
    const OpSample sample = with_channel_scale(random, random_conv(random), i % 3 != 0, i % 3 != 1);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

// -inf * 0, as in the reference.
TEST(GroupedConv, SwishOfMinusInfinityIsNoNumber) {
  Random random(15);
  for (const int64_t which : {2, 3}) {
    const OpSample sample = with_infinite_epilogue(random, {1, 32, 9, 9}, {32, 1, 3, 3}, 32, which);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1); });
  }
}

TEST(GroupedConv, RefusesWhatItHasNoLoopsFor) {
  Random random(13);
  const auto refusal = [&](int64_t group, const Dims& w, const Dims& dilations, bool constant_weights = true) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, group * w[1], 9, 9}, -1, 1),
                     draw_tensor(random, DType::f32, w, -1, 1)};
    sample.attributes = {{"group", group}, {"dilations", dilations}};
    return kernel_for("conv").why_not(KernelCase(conv_def(), sample, {1, constant_weights}).call());
  };
  EXPECT_EQ(refusal(32, {32, 1, 3, 3}, {1, 1}), "");
  EXPECT_EQ(refusal(32, {32, 1, 3, 3}, {1, 2}), "dilation");
  EXPECT_EQ(refusal(32, {64, 1, 3, 3}, {1, 1}), "not in groups of few channels, as many out as in");
  EXPECT_EQ(refusal(1, {32, 32, 3, 3}, {1, 1}), "not in groups of few channels, as many out as in");
  EXPECT_EQ(refusal(32, {32, 1, 3, 4}, {1, 1}), "a shape without loops");
  EXPECT_EQ(refusal(32, {32, 1, 3, 3}, {1, 1}, false), "unknown weights");
}

}  // namespace
}  // namespace autograph

// Dilated and transposed convolutions as tap products against the reference, in every layout and on every instruction
// set.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.tap_conv_simd", op); }

int64_t draw_channels(Random& random) { return draw_one_of<int64_t>(random, {1, 2, 3, 5, 8, 16, 19, 33, 64}); }

// One to three spatial dims, groups, strides, different pads on both sides, odd numbers of channels.
// Dilated, or of long windows.
OpSample random_conv(Random& random, bool is_dilated = true) {
  const int64_t rank = draw(random, 1, 3), group = draw_one_of<int64_t>(random, {1, 1, 1, 2, 3});
  Dims x{draw(random, 1, 2), group * draw_channels(random)};
  Dims w{group * std::max<int64_t>(group > 1 ? 2 : 1, draw_channels(random)), x[1] / group};
  Dims strides, dilations, pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t axis = 0; axis < rank; ++axis) {
    const int64_t most = is_dilated || axis > 0 ? 4 : 17;
    w.push_back(axis > 0 ? draw(random, 1, most) : draw(random, is_dilated ? 2 : 8, most));
    strides.push_back(draw_one_of<int64_t>(random, {1, 1, 2, 3}));
    dilations.push_back(!is_dilated ? 1 : axis == 0 ? draw(random, 2, 5) : draw(random, 1, 3));
    const int64_t span = (w.back() - 1) * dilations.back() + 1;
    for (const int64_t side : {axis, axis + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, span);
    const int64_t least =
        std::max<int64_t>(1, span - pads[static_cast<size_t>(axis)] - pads[static_cast<size_t>(axis + rank)]);
    x.push_back(least + draw(random, 0, rank == 1 ? 150 : rank == 2 ? 20 : 5));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {w[0]}, -1, 1));
  sample.attributes = {{"group", group}, {"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  return sample;
}

// Strides larger and smaller than the kernel, windows that overlap and do not, outputs that no window reaches.
OpSample random_transposed(Random& random) {
  const int64_t rank = draw(random, 1, 3), group = draw_one_of<int64_t>(random, {1, 1, 1, 2, 3});
  Dims x{draw(random, 1, 2), group * draw_channels(random)};
  Dims w{x[1], std::max<int64_t>(group > 1 ? 2 : 1, draw_channels(random))};
  Dims strides, dilations, pads(static_cast<size_t>(2 * rank), 0), output_padding;
  for (int64_t axis = 0; axis < rank; ++axis) {
    w.push_back(draw(random, 1, rank == 1 ? 16 : 5));
    x.push_back(draw(random, 2, rank == 1 ? 120 : rank == 2 ? 14 : 5));
    strides.push_back(draw(random, 1, rank == 1 ? 8 : 3));
    dilations.push_back(draw_one_of<int64_t>(random, {1, 1, 2, 3}));
    output_padding.push_back(draw(random, 0, strides.back() - 1));
    const int64_t span = (w.back() - 1) * dilations.back() + 1;
    const int64_t most = std::min(span - 1, (strides.back() + span - 1) / 2);
    for (const int64_t side : {axis, axis + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, most);
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {group * w[1]}, -1, 1));
  sample.attributes = {{"group", group}, {"strides", strides}, {"dilations", dilations}};
  const auto auto_pad =
      draw_one_of<std::string>(random, {"NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  sample.attributes.set("auto_pad", auto_pad);
  if (auto_pad == "NOTSET") {
    sample.attributes.set("pads", pads);
    sample.attributes.set("output_padding", output_padding);
  }
  return sample;
}

TEST(TapConv, DilatedOnRandomCalls) {
  Random random(41);
  for (int i = 0; i < 80; ++i) {
    const OpSample sample = random_conv(random);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(TapConv, LongWindowsOnRandomCalls) {
  Random random(47);
  for (int i = 0; i < 60; ++i) {
    const OpSample sample = random_conv(random, false);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(TapConv, TransposedOnRandomCalls) {
  Random random(42);
  for (int i = 0; i < 120; ++i) {
    const OpSample sample = random_transposed(random);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv_transpose"), conv_transpose_def(), sample, 1 + i % 3); });
  }
}

TEST(TapConv, EpiloguesOnRandomCalls) {
  Random random(43);
  for (int i = 0; i < 40; ++i) {
    const OpSample sample = with_epilogue(random, random_conv(random), i % kNumEpilogues);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
}

// Many rows, more columns than are summed at a time, several parts of the depth; rows or columns shared out.
TEST(TapConv, LargeCallsInParts) {
  Random random(44);
  for (const int threads : {1, 2, 3}) {
    SCOPED_TRACE(threads);
    OpSample dilated;
    dilated.inputs = {draw_tensor(random, DType::f32, {1, 128, 28, 28}, -1, 1),
                      draw_tensor(random, DType::f32, {128, 128, 3, 3}, -1, 1)};
    dilated.attributes = {{"pads", Dims{4, 4, 4, 4}}, {"dilations", Dims{4, 4}}};
    expect_every_variant(kernel_for("conv"), conv_def(), dilated, threads, {1e-4, 1e-3});
    OpSample upsampled;
    upsampled.inputs = {draw_tensor(random, DType::f32, {1, 256, 100}, -1, 1),
                        draw_tensor(random, DType::f32, {256, 128, 16}, -1, 1)};
    upsampled.attributes = {{"pads", Dims{4, 4}}, {"strides", Dims{8}}};
    expect_every_variant(kernel_for("conv_transpose"), conv_transpose_def(), upsampled, threads, {1e-4, 1e-3});
    OpSample image;
    image.inputs = {draw_tensor(random, DType::f32, {2, 48, 13, 17}, -1, 1),
                    draw_tensor(random, DType::f32, {48, 40, 4, 4}, -1, 1)};
    image.attributes = {{"pads", Dims{1, 1, 1, 1}}, {"strides", Dims{2, 2}}};
    expect_every_variant(kernel_for("conv_transpose"), conv_transpose_def(), image, threads, {1e-4, 1e-3});
  }
}

// Taps that meet nothing but padding in all rows of a tile are left out.
TEST(TapConv, DilationsAsLargeAsTheImage) {
  Random random(45);
  for (const int64_t dilation : {6, 12, 18, 33, 40}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 20, 33, 33}, -1, 1),
                     draw_tensor(random, DType::f32, {24, 20, 3, 3}, -1, 1)};
    sample.attributes = {{"pads", Dims(4, dilation)}, {"dilations", Dims(2, dilation)}};
    SCOPED_TRACE(dilation);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 2); });
  }
}

TEST(TapConv, SaysWhatItRefuses) {
  Random random(46);
  const auto refusal = [&](const OpDef& op, const Dims& w, const Attributes& attributes,
                           KernelSetup setup = {1, true}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 32, 9, 9}, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    sample.attributes = attributes;
    return kernel_for(op.name).why_not(KernelCase(op, sample, setup).call());
  };
  const Attributes apart{{"dilations", Dims{2, 2}}};
  EXPECT_EQ(refusal(conv_def(), {8, 32, 3, 3}, apart), "");
  EXPECT_EQ(refusal(conv_def(), {8, 32, 8, 1}, {}), "");
  const std::string neither = "no dilation, nor 8 taps in a row";
  EXPECT_EQ(refusal(conv_def(), {8, 32, 3, 3}, {}), neither);
  EXPECT_EQ(refusal(conv_def(), {8, 32, 1, 1}, apart), neither);
  EXPECT_EQ(refusal(conv_def(), {8, 32, 3, 3}, apart, {1, false}), "unknown weights");
  EXPECT_EQ(refusal(conv_def(), {32, 1, 3, 3}, {{"dilations", Dims{2, 2}}, {"group", int64_t{32}}}),
            "one output channel a group");
  EXPECT_EQ(refusal(conv_transpose_def(), {32, 8, 3, 3}, {}), "");
  EXPECT_EQ(refusal(conv_transpose_def(), {32, 1, 3, 3}, {{"group", int64_t{32}}}), "one output channel a group");
  EXPECT_EQ(refusal(conv_transpose_def(), {32, 8, 3, 3}, {}, {1, false}), "unknown weights");
}

}  // namespace
}  // namespace autograph

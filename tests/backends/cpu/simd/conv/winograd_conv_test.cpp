// 3x3, 5x5, 1xN, Nx1 and N convolutions by Winograd's algorithm against the reference, in every layout and on every
// instruction set.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel_for(std::string_view op) { return cpu_kernel("cpu.winograd_conv_simd", op); }

Dims draw_square(Random& random) { return Dims(2, draw_one_of(random, {int64_t{3}, int64_t{3}, int64_t{5}})); }

// Lines of one section and of several, odd and even.
int64_t draw_length(Random& random) {
  return draw_one_of(random, {int64_t{3}, int64_t{5}, int64_t{7}, draw(random, 3, 8), draw(random, 8, 20)});
}

Dims draw_line(Random& random) {
  Dims taps{1, draw_length(random)};
  if (draw_bool(random)) std::swap(taps[0], taps[1]);
  return taps;
}

// Of sums of a few hundred products; long lines lose four digits in a hundred thousand of a sum's magnitude of ten.
constexpr FloatTolerance kOfLines{1e-4, 4e-4};

// A random call: images of less than a tile and of many, whole tiles and not, channels that leave half a unit or a part
// of a vector, phases of a dilation that are not equally large, more of them than outputs.
OpSample random_conv(Random& random, const Dims& taps) {
  const bool whole = draw_bool(random);
  const int64_t in = whole ? 16 * draw(random, 1, 3) : draw(random, 16, 40);
  const int64_t out = whole ? 16 * draw(random, 1, 5) : draw(random, 16, 70);
  const size_t rank = taps.size();
  Dims x{draw(random, 1, 2), in}, w{out, in}, pads(2 * rank, 0), dilations(rank, 1);
  for (size_t a = 0; a < rank; ++a) {
    if (draw_bool(random)) dilations[a] = draw(random, 1, 4);
    const int64_t span = (taps[a] - 1) * dilations[a] + 1;
    // Across a line there may be rows of nothing but padding.
    const int64_t most = std::max<int64_t>(1, span - 1);
    pads[a] = draw(random, 0, most);
    pads[a + rank] = draw(random, 0, most);
    x.push_back(std::max<int64_t>(1, span - pads[a] - pads[a + rank]) + draw(random, 0, 22));
    w.push_back(taps[a]);
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {out}, -1, 1));
  sample.attributes = {{"pads", pads}, {"dilations", dilations}};
  return sample;
}

TEST(WinogradConv, EveryVariantOnRandomCalls) {
  Random random(21);
  for (int i = 0; i < 40; ++i) {
    const OpSample sample = random_conv(random, draw_square(random));
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(WinogradConv, LinesOnRandomCalls) {
  Random random(26);
  for (int i = 0; i < 30; ++i) {
    const OpSample sample = random_conv(random, draw_line(random));
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3, kOfLines); });
  }
}

TEST(WinogradConv, OneSpatialDimOnRandomCalls) {
  Random random(28);
  for (int i = 0; i < 30; ++i) {
    const OpSample sample = random_conv(random, {draw_length(random)});
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3, kOfLines); });
  }
}

TEST(WinogradConv, VolumesOnRandomCalls) {
  Random random(30);
  for (int i = 0; i < 30; ++i) {
    const OpSample image = random_conv(random, i % 3 == 0 ? draw_square(random) : draw_line(random));
    const Dims x = image.inputs[0].tensor().dims(), w = image.inputs[1].tensor().dims();
    const bool is_by_frame = i % 2 == 0;
    OpSample sample = image;
    const int64_t frames = draw(random, 1, 3);
    const auto pads = image.attributes.get<std::vector<int64_t>>("pads");
    const auto dilations = image.attributes.get<std::vector<int64_t>>("dilations");
    if (is_by_frame) {
      sample.inputs[0] = draw_tensor(random, DType::f32, {x[0], x[1], frames, x[2], x[3]}, -1, 1);
      sample.inputs[1] = image.inputs[1].tensor().reshaped({w[0], w[1], 1, w[2], w[3]});
      sample.attributes = {{"pads", std::vector<int64_t>{0, pads[0], pads[1], 0, pads[2], pads[3]}},
                           {"dilations", std::vector<int64_t>{1, dilations[0], dilations[1]}}};
    } else {
      sample = random_conv(random, {draw_length(random)});
      const Dims line = sample.inputs[0].tensor().dims(), taps = sample.inputs[1].tensor().dims();
      const auto around = sample.attributes.get<std::vector<int64_t>>("pads");
      const auto apart = sample.attributes.get<std::vector<int64_t>>("dilations");
      sample.inputs[0] = draw_tensor(random, DType::f32, {line[0], line[1], line[2], frames, 5}, -1, 1);
      sample.inputs[1] = sample.inputs[1].tensor().reshaped({taps[0], taps[1], taps[2], 1, 1});
      sample.attributes = {{"pads", std::vector<int64_t>{around[0], 0, 0, around[1], 0, 0}},
                           {"dilations", std::vector<int64_t>{apart[0], 1, 1}}};
    }
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("conv"), conv_def(), sample, 1 + i % 3, kOfLines); });
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
    const Dims taps = i % 2 == 0 ? draw_square(random) : i % 4 == 1 ? draw_line(random) : Dims{draw_length(random)};
    const OpSample sample = with_epilogue(random, random_conv(random, taps), i % kNumEpilogues);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2, kOfLines); });
  }
}

TEST(WinogradConv, TakesFactorsAndShiftsOfChannelsIntoItsWeights) {
  Random random(29);
  for (int i = 0; i < 9; ++i) {
    const OpSample conv = random_conv(random, i % 3 == 2 ? Dims{3} : draw_square(random));
    const OpSample sample = with_channel_scale(random, conv, i % 3 != 0, i % 3 != 1);
    SCOPED_TRACE(i);
    on_every_isa([&] { expect_every_variant(kernel_for("fused"), fused_def(), sample, 1 + i % 2); });
  }
  const OpSample extreme = with_channel_scale(random, random_conv(random, {3, 3}), true, true, 1e20);
  EXPECT_EQ(kernel_for("fused").why_not(KernelCase(fused_def(), extreme, {1, true}).call()),
            "no loop for mul behind it");
}

// The points were chosen for it: on normal values no more than three times the error of sums in f32.
TEST(WinogradConv, LosesFewDigits) {
  Random random(24);
  for (const auto& [taps, extent] : {std::pair<int64_t, int64_t>{3, 16}, {5, 16}, {3, 8}}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 256, extent, extent}, -1, 1),
                     draw_tensor(random, DType::f32, {32, 256, taps, taps}, -1, 1)};
    sample.attributes = {{"pads", std::vector<int64_t>(4, taps / 2)}};
    // Standard deviation of sums of 2304 or 6400 products.
    const double magnitude = taps == 3 ? 16 : 27;
    expect_every_variant(kernel_for("conv"), conv_def(), sample, 2, {0, magnitude * 1e-5});
  }
}

// Ten points need more room than six: no more than 4e-5 of the outputs' standard deviation, where the usual points 0,
// +-1/2, +-1, +-2, +-4 lose 1e-4. Sections do not lose more.
TEST(WinogradConv, LinesLoseFewDigits) {
  Random random(27);
  for (const int64_t taps : {3, 5, 7, 9, 11, 31}) {
    OpSample sample;
    sample.inputs = {draw_tensor(random, DType::f32, {1, 192, 17, 17}, -1, 1),
                     draw_tensor(random, DType::f32, {32, 192, 1, taps}, -1, 1)};
    sample.attributes = {{"pads", std::vector<int64_t>{0, taps / 2, 0, taps / 2}}};
    // Standard deviation of sums of 576 to 5952 products.
    const double magnitude = std::sqrt(192.0 * static_cast<double>(taps)) / 3;
    expect_every_variant(kernel_for("conv"), conv_def(), sample, 2,
                         {0, magnitude * (taps % 4 == 3 && taps > 3 ? 4e-5
                                          : taps > 3                ? 2e-5
                                                                    : 1e-5)});
  }
}

TEST(WinogradConv, RefusesWhatItHasNoLoopsFor) {
  Random random(25);
  const auto refusal = [&](const Dims& w, const Attributes& attributes, KernelSetup setup = {1, true}) {
    OpSample sample;
    Dims x(w.size(), 9);
    x[0] = 1;
    x[1] = 32;
    sample.inputs = {draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)};
    sample.attributes = attributes;
    return kernel_for("conv").why_not(KernelCase(conv_def(), sample, setup).call());
  };
  EXPECT_EQ(refusal({32, 32, 3, 3}, {}), "");
  EXPECT_EQ(refusal({32, 32, 5, 5}, {}), "");
  EXPECT_EQ(refusal({32, 32, 1, 7}, {}), "");
  EXPECT_EQ(refusal({32, 32, 5, 1}, {}), "");
  EXPECT_EQ(refusal({32, 32, 3}, {}), "");
  EXPECT_EQ(refusal({32, 32, 1, 7}, {}, {.threads = 1, .constant_weights = true, .exact = true}),
            "sums in another order");
  EXPECT_EQ(refusal({32, 32, 1, 9}, {}), "");
  EXPECT_EQ(refusal({32, 32, 4}, {}), "");
  const std::string others = "3x3, 5x5 and lines of 3 and more only";
  EXPECT_EQ(refusal({32, 32, 3, 5}, {}), others);
  EXPECT_EQ(refusal({32, 32, 7, 7}, {}), others);
  EXPECT_EQ(refusal({32, 32, 1, 1}, {}), others);
  EXPECT_EQ(refusal({32, 32, 2}, {}), others);
  EXPECT_EQ(refusal({32, 32, 3, 3, 3}, {}), others);
  EXPECT_EQ(refusal({32, 32, 1, 3, 3}, {}), "");
  EXPECT_EQ(refusal({32, 32, 3, 1, 1}, {}), "");
  EXPECT_EQ(refusal({32, 32, 3, 1, 3}, {}), others);
  EXPECT_EQ(refusal({32, 32, 1, 3, 3}, {{"pads", std::vector<int64_t>{1, 0, 0, 0, 0, 0}}}), others);
  EXPECT_EQ(refusal({32, 16, 3, 3}, {{"group", int64_t{2}}}), "groups");
  EXPECT_EQ(refusal({17, 32, 3, 3}, {}), "");
  EXPECT_EQ(refusal({15, 32, 3, 3}, {}), "less than 16 channels");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {{"strides", std::vector<int64_t>{2, 2}}}), "strides");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {{"dilations", std::vector<int64_t>{1, 2}}}), "");
  EXPECT_EQ(refusal({32, 32, 3, 3}, {}, {1, false}), "unknown weights");
}

}  // namespace
}  // namespace autograph

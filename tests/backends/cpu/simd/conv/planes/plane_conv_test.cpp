// Convolutions of row-major planes with few output channels against the reference: any windows, epilogues, blocks of
// rows, columns and channels.
#include <gtest/gtest.h>

#include <limits>

#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/kernels/conv_epilogue.h"
#include "support/kernels/every_variant.h"
#include "support/kernels/kernel_checks.h"

namespace autograph {
namespace {

KernelDef kernel() { return cpu_kernel("cpu.conv_of_planes", "conv"); }

OpSample random_conv(Random& random) {
  const int64_t rank = draw(random, 1, 2), channels = draw(random, 1, 5);
  Dims x{draw(random, 1, 2), channels}, w{draw(random, 1, 9), channels}, strides, dilations;
  Dims pads(static_cast<size_t>(2 * rank), 0);
  for (int64_t a = 0; a < rank; ++a) {
    w.push_back(draw(random, 1, 5));
    strides.push_back(draw(random, 1, 3));
    dilations.push_back(draw(random, 1, 3));
    for (const int64_t side : {a, a + rank}) pads[static_cast<size_t>(side)] = draw(random, 0, 6);
    const int64_t span = (w.back() - 1) * dilations.back() + 1;
    x.push_back(span + draw(random, 0, a + 1 == rank ? 150 : 9));
  }
  OpSample sample;
  sample.inputs = {draw_tensor(random, DType::f32, x), draw_tensor(random, DType::f32, w)};
  if (draw_bool(random)) sample.inputs.emplace_back(draw_tensor(random, DType::f32, {w[0]}));
  sample.attributes = {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  return sample;
}

// What conv makes of dims alone.
OpSample conv_of(Random& random, const Dims& x, const Dims& w, const Dims& strides, const Dims& pads) {
  return {{draw_tensor(random, DType::f32, x, -1, 1), draw_tensor(random, DType::f32, w, -1, 1)},
          {{"strides", strides}, {"pads", pads}}};
}

TEST(PlaneConv, AnyWindow) {
  Random random(61);
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    const OpSample sample = random_conv(random);
    on_every_isa([&] { expect_every_variant(kernel(), conv_def(), sample, 1 + i % 3); });
  }
}

TEST(PlaneConv, EpiloguesOnRandomCalls) {
  Random random(62);
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(i);
    const OpSample sample = with_epilogue(random, random_conv(random), i % kNumEpilogues);
    const KernelDef fused = cpu_kernel("cpu.conv_of_planes", "fused");
    on_every_isa([&] { expect_every_variant(fused, fused_def(), sample, 1 + i % 2); });
  }
}

// More channels than are copied at a time, blocks of rows that do not divide the image, long rows in parts.
TEST(PlaneConv, LargeCallsInParts) {
  Random random(63);
  const OpSample samples[] = {
      conv_of(random, {1, 65, 61, 75}, {3, 65, 3, 3}, {1, 1}, {1, 1, 1, 1}),
      conv_of(random, {2, 33, 40, 57}, {1, 33, 7, 5}, {1, 2}, {3, 2, 3, 2}),
      conv_of(random, {1, 9, 37, 264}, {8, 9, 3, 39}, {1, 1}, {1, 19, 1, 19}),
      conv_of(random, {1, 1, 4409}, {1, 1, 256}, {2}, {0, 0}),
      conv_of(random, {1, 3, 2111}, {2, 3, 31}, {1}, {15, 15}),
  };
  for (const OpSample& sample : samples) {
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(threads);
      on_every_isa([&] { expect_every_variant(kernel(), conv_def(), sample, threads); });
    }
  }
}

TEST(PlaneConv, SaysWhatItRefuses) {
  Random random(64);
  const auto refusal = [&](const OpSample& sample) {
    return KernelRun(kernel(), KernelCase(conv_def(), sample)).refusal();
  };
  EXPECT_EQ(refusal(conv_of(random, {1, 4, 5, 5}, {17, 4, 3, 3}, {1, 1}, {0, 0, 0, 0})), "channels that fill vectors");
  EXPECT_EQ(refusal(conv_of(random, {1, 4, 5, 5, 5}, {1, 4, 3, 3, 3}, {1, 1, 1}, Dims(6, 0))),
            "one or two spatial dims only");
  EXPECT_EQ(refusal(conv_of(random, {1, 4, 5, 5}, {1, 4, 3, 3}, {1, 1}, {0, 0, 0, 0})), "unknown weights");
}

}  // namespace
}  // namespace autograph

// Casts to and from half precision: every binary16 number, and floats around every one of them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "autograph/op_def.h"
#include "autograph/random.h"
#include "backends/cpu/cpu_kernels.h"
#include "ops/defs.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {
namespace {

// By the definition: sign, exponent, fraction.
float defined_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                  : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  if (exponent == 31) {
    magnitude = fraction == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

TEST(HalfCast, Binary16IsAsDefined) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = defined_value(half);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(binary16_to_float(half)));
      EXPECT_TRUE(std::isnan(binary16_to_float(float_to_binary16(value))));
      continue;
    }
    ASSERT_EQ(std::bit_cast<uint32_t>(binary16_to_float(half)), std::bit_cast<uint32_t>(value)) << bits;
    ASSERT_EQ(float_to_binary16(value), half);
  }
}

// The middle between two neighbours goes to the even one, what is beside it to the nearer one.
TEST(HalfCast, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7BFF; ++bits) {
    const auto next = static_cast<uint16_t>(bits + 1);
    const float middle = (defined_value(bits) + defined_value(next)) / 2;
    ASSERT_EQ(float_to_binary16(middle), (bits & 1) == 0 ? bits : next) << bits;
    ASSERT_EQ(float_to_binary16(std::nextafter(middle, 0.0F)), bits);
    ASSERT_EQ(float_to_binary16(std::nextafter(middle, 1e6F)), next);
    ASSERT_EQ(float_to_binary16(-middle), 0x8000 | ((bits & 1) == 0 ? bits : next));
  }
  EXPECT_EQ(float_to_binary16(65519.99F), 0x7BFF);
  EXPECT_EQ(float_to_binary16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_binary16(std::numeric_limits<float>::max()), 0x7C00);
  EXPECT_EQ(float_to_binary16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(float_to_binary16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(Half::saturating(1e9F).bits, 0x7BFF);
  EXPECT_EQ(Half::saturating(-1e9F).bits, 0xFBFF);
}

TEST(HalfCast, KernelAgreesWithTheReference) {
  Random random(4);
  const DType halves[] = {DType::f16, DType::bf16};
  for (const DType half : halves) {
    for (const bool widens : {true, false}) {
      for (const int64_t count : {1, 37, 100000}) {
        OpSample sample;
        sample.inputs = {draw_tensor(random, widens ? half : DType::f32, {count}, -1e5, 1e5)};
        sample.attributes = {{"to", widens ? DType::f32 : half}};
        const KernelCase test(*find_op("cast"), sample, {2});
        KernelRun run(half_cast_kernel(), test);
        ASSERT_EQ(run.refusal(), "");
        run.run();
        EXPECT_EQ(difference({Datum(run.outputs()[0])}, {Datum(test.reference()[0])}, {0, 0}), "");
      }
    }
  }
}

}  // namespace
}  // namespace autograph

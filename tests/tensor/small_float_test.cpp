#include "autograph/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace autograph {
namespace {

// Every encoding decodes to a float that encodes back to itself (NaNs to some NaN).
template <class T>
void expect_all_encodings_round_trip(int bits) {
  for (uint32_t code = 0; code < (1u << bits); ++code) {
    const T value = T::from_bits(static_cast<decltype(T::bits)>(code));
    const float wide = value;
    const T back(wide);
    if (std::isnan(wide))
      EXPECT_TRUE(std::isnan(float(back))) << code;
    else
      EXPECT_EQ(back.bits, value.bits) << code << " = " << wide;
  }
}

TEST(SmallFloat, EveryEncodingRoundTrips) {
  expect_all_encodings_round_trip<Half>(16);
  expect_all_encodings_round_trip<BFloat16>(16);
  expect_all_encodings_round_trip<Float8E4M3FN>(8);
  expect_all_encodings_round_trip<Float8E4M3FNUZ>(8);
  expect_all_encodings_round_trip<Float8E5M2>(8);
  expect_all_encodings_round_trip<Float8E5M2FNUZ>(8);
  expect_all_encodings_round_trip<Float8E8M0>(8);
  expect_all_encodings_round_trip<Float4E2M1>(4);
  expect_all_encodings_round_trip<Float6E2M3>(6);
  expect_all_encodings_round_trip<Float6E3M2>(6);
}

// Rounds to the nearest encoding, ties to the even one: checked against a search over all encodings.
template <class T>
void expect_nearest(const std::vector<float>& samples, int bits) {
  for (const float x : samples) {
    double best = INFINITY;
    std::vector<uint32_t> nearest;
    for (uint32_t code = 0; code < (1u << bits); ++code) {
      const float candidate = T::from_bits(static_cast<decltype(T::bits)>(code));
      if (!std::isfinite(candidate) || std::signbit(candidate) != std::signbit(x)) continue;
      const double distance = std::fabs(static_cast<double>(candidate) - x);
      if (distance < best) nearest.clear();
      if (distance <= best) nearest.push_back(code);
      best = std::fmin(best, distance);
    }
    const uint32_t expected = nearest.size() == 2 && nearest[1] % 2 == 0 ? nearest[1] : nearest[0];
    EXPECT_EQ(T(x).bits, expected) << x;
  }
}

TEST(SmallFloat, RoundsToNearestEven) {
  std::vector<float> samples;
  for (int i = 1; i < 500; ++i) samples.push_back(static_cast<float>(i) / 71.0F);
  for (int i = 1; i < 64; ++i) samples.push_back(static_cast<float>(i) / 16.0F);
  for (int i = 1; i < 64; ++i) samples.push_back(-static_cast<float>(i) / 4096.0F);
  expect_nearest<Float8E4M3FN>(samples, 8);
  expect_nearest<Float8E5M2>(samples, 8);
  expect_nearest<Half>(samples, 16);
}

TEST(SmallFloat, OverflowFollowsTheFormat) {
  EXPECT_TRUE(std::isinf(float(Half(65520.0F))));
  EXPECT_EQ(float(Half(65519.0F)), 65504.0F);
  EXPECT_TRUE(std::isnan(float(Float8E4M3FN(1000.0F))));
  EXPECT_EQ(float(Float8E4M3FN::saturating(1000.0F)), 448.0F);
  EXPECT_TRUE(std::isinf(float(Float8E5M2(1e6F))));
  EXPECT_EQ(float(Float8E5M2::saturating(-1e6F)), -57344.0F);
  EXPECT_TRUE(std::isnan(float(Float8E4M3FNUZ(1e6F))));
  EXPECT_EQ(float(Float4E2M1(100.0F)), 6.0F);
}

TEST(SmallInt, KeepsTheLowBits) {
  EXPECT_EQ(int(Int4(7)), 7);
  EXPECT_EQ(int(Int4(8)), -8);
  EXPECT_EQ(int(UInt4(17)), 1);
  EXPECT_EQ(int(Int2(3)), -1);
}

}  // namespace
}  // namespace autograph

// The generator of the zoo's weights: the same values everywhere, with the promised mean and spread.
#include "models/weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace autograph {
namespace {

struct Moments {
  double mean = 0;
  double deviation = 0;
};

Moments moments(const Tensor& tensor) {
  Moments result;
  for (const float value : tensor.elements<float>()) result.mean += value;
  result.mean /= static_cast<double>(tensor.num_elements());
  for (const float value : tensor.elements<float>()) {
    result.deviation += (value - result.mean) * (value - result.mean);
  }
  result.deviation = std::sqrt(result.deviation / static_cast<double>(tensor.num_elements()));
  return result;
}

TEST(Weights, NormalHasTheMeanAndDeviationAskedFor) {
  const Moments found = moments(Weights("model").normal("w", {300, 1000}, 2.0F, 0.5F));
  // Standard error of the mean: 0.5 / sqrt(300,000) = 0.0009.
  EXPECT_NEAR(found.mean, 2.0, 0.005);
  EXPECT_NEAR(found.deviation, 0.5, 0.005);
}

TEST(Weights, UniformStaysBetweenItsBounds) {
  const Tensor drawn = Weights("model").uniform("w", {100000}, 0.5F, 1.5F);
  float low = 2;
  float high = 0;
  for (const float value : drawn.elements<float>()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_GE(low, 0.5F);
  EXPECT_LE(high, 1.5F);
  EXPECT_LT(low, 0.501F);
  EXPECT_GT(high, 1.499F);
}

TEST(Weights, ValuesDependOnModelParameterAndIndexAlone) {
  const Weights weights("model");
  const Tensor long_one = weights.normal("w", {100}, 0, 1);
  const Tensor short_one = weights.normal("w", {2, 5}, 0, 1);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(long_one.data<float>()[i], short_one.data<float>()[i]) << i;
  EXPECT_FALSE(weights.normal("v", {100}, 0, 1).bitwise_equal(long_one));
  EXPECT_FALSE(Weights("other").normal("w", {100}, 0, 1).bitwise_equal(long_one));
  EXPECT_TRUE(Weights("model").normal("w", {100}, 0, 1).bitwise_equal(long_one));
}

// Several threads draw large ones.
TEST(Weights, LargeOnesBeginLikeSmallOnesAndGoOn) {
  const Weights weights("model");
  const Tensor small = weights.normal("w", {1000}, 0, 1), large = weights.normal("w", {600'001}, 0, 1);
  EXPECT_TRUE(std::equal(small.data<float>(), small.data<float>() + 1000, large.data<float>()));
  const Tensor uniform = weights.uniform("w", {600'001}, 0, 1);
  for (const uint64_t i : {0, 262'143, 262'144, 524'288, 600'000}) {
    EXPECT_EQ(uniform.data<float>()[i],
              static_cast<float>(static_cast<double>(weights.bits("w", i) >> 40) / 16777216.0))
        << i;
  }
}

// Exported models are compared across machines: these bits must never change.
TEST(Weights, BitsAreThoseOfTheFirstRelease) {
  const Weights weights("model");
  EXPECT_EQ(weights.bits("w", 0), 0x243C1A887A8D4A1FULL);
  EXPECT_EQ(weights.bits("w", 1), 0x2FE418A03E3E1E78ULL);
  const Tensor drawn = weights.normal("w", {2}, 0, 1);
  EXPECT_FLOAT_EQ(drawn.data<float>()[0], -1.70874047F);
  EXPECT_FLOAT_EQ(drawn.data<float>()[1], -2.34615493F);
}

}  // namespace
}  // namespace autograph

// Statistics against elements that are counted by hand.
#include "autograph/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace autograph {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Statistics, OfNumbers) {
  const auto found = statistics_of(Tensor::of<float>({2, 2}, {-1, 0, 2, 3}).view());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->count, 4);
  EXPECT_EQ(found->min, -1);
  EXPECT_EQ(found->max, 3);
  EXPECT_EQ(found->mean, 1);
  EXPECT_EQ(found->rms, std::sqrt(14.0 / 4));
  EXPECT_EQ(to_string(*found), "min -1, max 3, mean 1, rms 1.87083");
}

TEST(Statistics, NanIsCountedAndInNothingElse) {
  const auto found = statistics_of(Tensor::of<float>({4}, {kNan, 2, kNan, 4}).view());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->num_nan, 2);
  EXPECT_EQ(found->mean, 3);
  EXPECT_EQ(to_string(*found), "min 2, max 4, mean 3, rms 3.16228, 2 NaN");
  const auto none = statistics_of(Tensor::of<float>({1}, {kNan}).view());
  EXPECT_FALSE(none->has_numbers());
  EXPECT_EQ(to_string(*none), "no numbers, 1 NaN");
}

TEST(Statistics, InfinitiesAreNumbers) {
  const auto found = statistics_of(Tensor::of<float>({3}, {1, -kInfinity, 4}).view());
  EXPECT_EQ(found->num_infinite, 1);
  EXPECT_EQ(found->min, -kInfinity);
  EXPECT_EQ(found->max, 4);
}

TEST(Statistics, OfOtherTypesOfElements) {
  EXPECT_EQ(statistics_of(Tensor::of<int64_t>({3}, {-5, 1, 1}).view())->mean, -1);
  EXPECT_EQ(statistics_of(Tensor::of<bool>({4}, {true, false, true, true}).view())->mean, 0.75);
  EXPECT_EQ(statistics_of(Tensor::of<Half>({2}, {Half(1.5F), Half(-0.5F)}).view())->mean, 0.5);
  EXPECT_EQ(statistics_of(Tensor::of<uint8_t>({0}, {}).view())->count, 0);
  EXPECT_EQ(to_string(*statistics_of(Tensor::of<uint8_t>({0}, {}).view())), "no elements");
  EXPECT_FALSE(statistics_of(Tensor::of<std::string>({1}, {"a"}).view()));
}

}  // namespace
}  // namespace autograph

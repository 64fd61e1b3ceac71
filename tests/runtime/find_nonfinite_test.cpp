// The first NaN or infinity, found by whole words, against looking at one element after the other.
#include "runtime/find_nonfinite.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace autograph {
namespace {

template <class T>
int64_t find_plainly(const std::vector<T>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(static_cast<double>(values[i]))) return static_cast<int64_t>(i);
  }
  return -1;
}

// Lengths that are no whole words, the largest finite and the smallest infinite, in every place.
template <class T>
void expect_found_everywhere(T largest, const std::vector<T>& bad) {
  std::mt19937 random(7);
  for (const int64_t length : {0, 1, 2, 3, 5, 8, 13, 4099, 9001}) {
    std::vector<T> values(static_cast<size_t>(length), largest);
    for (size_t i = 0; i < values.size(); i += 2) values[i] = T(-1.5F);
    EXPECT_EQ(find_nonfinite(Tensor::of<T>({length}, values).view()), -1) << length;
    for (int trial = 0; trial < 40 && length > 0; ++trial) {
      std::vector<T> some = values;
      for (int n = 0; n < 2; ++n) some[random() % some.size()] = bad[random() % bad.size()];
      EXPECT_EQ(find_nonfinite(Tensor::of<T>({length}, some).view()), find_plainly(some)) << length;
    }
  }
}

TEST(FindNonfinite, InEveryTypeOfElements) {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto infinity = std::numeric_limits<float>::infinity();
  expect_found_everywhere<float>(std::numeric_limits<float>::max(), {nan, -nan, infinity, -infinity});
  expect_found_everywhere<double>(std::numeric_limits<double>::max(), {nan, -nan, infinity, -infinity});
  expect_found_everywhere<Half>(Half(65504.0F), {Half(nan), Half(infinity), Half(-infinity)});
  expect_found_everywhere<BFloat16>(BFloat16(3.38e38F), {BFloat16(nan), BFloat16(infinity), BFloat16(-infinity)});
}

TEST(FindNonfinite, OtherTypesHaveNone) {
  EXPECT_EQ(find_nonfinite(Tensor::of<int64_t>({2}, {-1, std::numeric_limits<int64_t>::max()}).view()), -1);
}

TEST(FindWorst, ANanRatherThanAnInfinityBeforeIt) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const auto worst_of = [](std::vector<float> values) {
    return find_worst(Tensor::of<float>({static_cast<int64_t>(values.size())}, values).view());
  };
  const Nonfinite found = worst_of({1, infinity, -infinity, nan, nan});
  EXPECT_EQ(found.at, 3);
  EXPECT_TRUE(found.is_nan);
  const Nonfinite infinite = worst_of({1, 2, -infinity, infinity});
  EXPECT_EQ(infinite.at, 2);
  EXPECT_FALSE(infinite.is_nan);
  EXPECT_EQ(worst_of({1, 2}).at, -1);
}

}  // namespace
}  // namespace autograph

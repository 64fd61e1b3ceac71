#include "autograph/compare_values.h"

#include <gtest/gtest.h>

#include <cmath>

namespace autograph {
namespace {

Datum floats(const std::vector<float>& values) {
  return Tensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST(CompareValues, ToleratesWhatTheToleranceSays) {
  const Datum expected = floats({1, -2});
  EXPECT_TRUE(compare_values(floats({1.05F, -2}), expected, {.rtol = 0.1, .atol = 0}).ok);
  const Difference apart = compare_values(floats({1.5F, -2}), expected, {.rtol = 0.1, .atol = 0});
  EXPECT_FALSE(apart.ok);
  EXPECT_EQ(apart.num_bad, 1);
  EXPECT_DOUBLE_EQ(apart.max_abs, 0.5);
  EXPECT_DOUBLE_EQ(apart.max_rel, 0.25);
  EXPECT_EQ(apart.why, "element 0: expected 1, got 1.5");
}

TEST(CompareValues, NanEqualsNanAndInfinityItself) {
  const Datum odd = floats({NAN, INFINITY, 1});
  EXPECT_TRUE(compare_values(odd, odd, {}).ok);
  EXPECT_FALSE(compare_values(floats({0, INFINITY, 1}), odd, {}).ok);
  EXPECT_FALSE(compare_values(floats({NAN, -INFINITY, 1}), odd, {}).ok);
}

TEST(CompareValues, IntegersMustBeEqual) {
  const Datum seven = Tensor::of<int64_t>({1}, {7});
  EXPECT_TRUE(compare_values(seven, seven, {}).ok);
  EXPECT_FALSE(compare_values(Tensor::of<int64_t>({1}, {8}), seven, {.rtol = 1, .atol = 1}).ok);
  EXPECT_EQ(compare_values(floats({7}), seven, {}).why, "expected i64[1], got f32[1]");
}

TEST(CompareValues, ListsTellTheFirstThatDiffers) {
  const std::vector<Datum> expected = {floats({1}), floats({4})};
  const Difference apart = compare_all({floats({1}), floats({5})}, expected, Tolerance());
  EXPECT_EQ(apart.why, "in value 1: element 0: expected 4, got 5");
  EXPECT_DOUBLE_EQ(apart.max_abs, 1);
  EXPECT_EQ(compare_all({floats({1})}, expected, Tolerance()).why, "expected 2 values, got 1");
  EXPECT_FALSE(compare_values(Datum(expected), floats({1}), Tolerance()).ok);
}

}  // namespace
}  // namespace autograph

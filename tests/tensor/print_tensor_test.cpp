#include <gtest/gtest.h>

#include <complex>
#include <sstream>

#include "autograph/tensor.h"

namespace autograph {
namespace {

TEST(PrintTensor, NestsAxes) {
  std::ostringstream text;
  text << Tensor::of<float>({2, 1, 2}, {1, 2.5F, -0.0F, 1e-9F});
  EXPECT_EQ(text.str(), "f32[2,1,2] {{{1, 2.5}}, {{-0, 1e-09}}}");
  EXPECT_EQ(to_string(Tensor::scalar<int64_t>(-3)), "i64[] -3");
}

TEST(PrintTensor, LeavesOutTheMiddle) {
  EXPECT_EQ(to_string(Tensor::vector({0, 1, 2, 3, 4, 5, 6})), "i64[7] {0, 1, 2, 3, 4, 5, 6}");
  EXPECT_EQ(to_string(Tensor::vector({0, 1, 2, 3, 4, 5, 6, 7})), "i64[8] {0, 1, 2, ..., 5, 6, 7}");
}

TEST(PrintTensor, ShowsEveryKindOfElement) {
  EXPECT_EQ(to_string(Tensor()), "absent");
  EXPECT_EQ(to_string(Tensor::zeros(DType::f32, {2, 0})), "f32[2,0] {}");
  EXPECT_EQ(to_string(Tensor::of<uint64_t>({1}, {~uint64_t{0}})), "u64[1] {18446744073709551615}");
  EXPECT_EQ(to_string(Tensor::of<std::string>({2}, {"a\n", ""})), "string[2] {\"a\\n\", \"\"}");
  EXPECT_EQ(to_string(Tensor::of<std::string>({1}, {R"(a", "b\)"})), R"(string[1] {"a\", \"b\\"})");
  EXPECT_EQ(to_string(Tensor::of<std::complex<float>>({1}, {{1, -2}})), "c64[1] {1-2i}");
  EXPECT_EQ(to_string(Tensor::zeros(DType::boolean, {2})), "bool[2] {false, false}");
  EXPECT_EQ(to_string(Tensor::of<BFloat16>({1}, {BFloat16(1.5F)})), "bf16[1] {1.5}");
  EXPECT_EQ(to_string(Tensor::zeros(DType::i4, {2})), "i4[2] {0, 0}");
}

}  // namespace
}  // namespace autograph

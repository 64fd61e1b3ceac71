// Elementwise ops on values where languages and hardware differ: wrap-around, division by zero, NaN, casts.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "autograph/ops/elementwise.h"
#include "ops/defs.h"
#include "ops/elementwise/convert.h"
#include "ops/run_op.h"

namespace autograph {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr int32_t kLowest = std::numeric_limits<int32_t>::lowest();

template <class T>
Tensor row(const std::vector<T>& values) {
  return Tensor::of<T>({static_cast<int64_t>(values.size())}, values);
}

TEST(Elementwise, IntegerArithmeticWrapsAndNeverTraps) {
  const Tensor a = row<int32_t>({kLowest, 7, -7, 5});
  const Tensor b = row<int32_t>({-1, 2, 2, 0});
  EXPECT_EQ(elements<int32_t>(run_op(div_def(), {a, b})), (std::vector<int32_t>{kLowest, 3, -3, 0}));
  EXPECT_EQ(elements<int32_t>(run_op(add_def(), {a, b}))[0], std::numeric_limits<int32_t>::max());
  EXPECT_EQ(elements<int32_t>(run_op(abs_def(), {a})), (std::vector<int32_t>{kLowest, 7, 7, 5}));
  EXPECT_EQ(elements<uint16_t>(run_op(mul_def(), {row<uint16_t>({65535}), row<uint16_t>({65535})})),
            (std::vector<uint16_t>{1}));
}

TEST(Elementwise, BroadcastingStretchesExtentsOfOne) {
  const Tensor a = Tensor::of<float>({2, 1}, {1, 2});
  const Tensor b = Tensor::of<float>({3}, {10, 20, 30});
  const Tensor c = run_op(add_def(), {a, b});
  EXPECT_EQ(c.dims(), (Dims{2, 3}));
  EXPECT_EQ(elements<float>(c), (std::vector<float>{11, 21, 31, 12, 22, 32}));
}

TEST(Elementwise, ShapesThatDoNotBroadcastAreNamed) {
  const Tensor a = Tensor::zeros(DType::f32, {2, 3});
  const Tensor b = Tensor::zeros(DType::f32, {2});
  EXPECT_EQ(error_of(add_def(), {a, b}), "[add] shapes: [2,3] and [2] do not broadcast");
}

TEST(Elementwise, ModTakesTheSignOfTheDivisorOrOfTheDividend) {
  const Tensor a = row<int32_t>({-7, 7, kLowest, 5});
  const Tensor b = row<int32_t>({3, -3, -1, 0});
  EXPECT_EQ(elements<int32_t>(run_op(mod_def(), {a, b})), (std::vector<int32_t>{2, -2, 0, 0}));
  EXPECT_EQ(elements<int32_t>(run_op(mod_def(), {a, b}, {{"fmod", int64_t{1}}})), (std::vector<int32_t>{-1, 1, 0, 0}));
  const Tensor c = run_op(mod_def(), {row<float>({-1.5F, 2, -2, 1}), row<float>({1, kInf, kInf, 0})});
  EXPECT_EQ(c.data<float>()[0], 0.5F);
  EXPECT_EQ(c.data<float>()[1], 2.0F);
  EXPECT_EQ(c.data<float>()[2], kInf);
  EXPECT_TRUE(std::isnan(c.data<float>()[3]));
}

TEST(Elementwise, PowOfIntegersIsExactAndNegativeExponentsTruncate) {
  const Tensor a = row<int64_t>({3, -1, 2, 0});
  const Tensor b = row<int64_t>({39, -3, -1, 0});
  EXPECT_EQ(elements<int64_t>(run_op(pow_def(), {a, b})), (std::vector<int64_t>{4052555153018976267, -1, 0, 1}));
  EXPECT_EQ(elements<float>(run_op(pow_def(), {row<float>({2, 9}), row<float>({-1, 0.5F})})),
            (std::vector<float>{0.5F, 3}));
}

TEST(Elementwise, ShiftsOfTheWidthOrMoreLeaveOnlyTheFill) {
  const Tensor a = row<int8_t>({-4, 4, -4, 1});
  const Tensor b = row<int8_t>({1, 8, -1, 3});
  EXPECT_EQ(elements<int8_t>(run_op(bit_shift_def(), {a, b}, {{"direction", std::string("RIGHT")}})),
            (std::vector<int8_t>{-2, 0, -1, 0}));
  EXPECT_EQ(elements<int8_t>(run_op(bit_shift_def(), {a, b}, {{"direction", std::string("LEFT")}})),
            (std::vector<int8_t>{-8, 0, 0, 8}));
  EXPECT_EQ(error_of(bit_shift_def(), {a, b}, {{"direction", std::string("UP")}}),
            "[bit_shift] attribute 'direction': expected one of [LEFT,RIGHT], got 'UP'");
}

TEST(Elementwise, MaxAndMinPropagateNanFromEverySide) {
  const Tensor a = row<float>({NAN, 1, 3});
  const Tensor b = row<float>({1, NAN, 2});
  for (const OpDef* op : {&max_def(), &min_def()}) {
    const Tensor c = run_op(*op, {a, b});
    EXPECT_TRUE(std::isnan(c.data<float>()[0])) << op->name;
    EXPECT_TRUE(std::isnan(c.data<float>()[1])) << op->name;
  }
  EXPECT_EQ(run_op(max_def(), {a, b}).data<float>()[2], 3);
  EXPECT_EQ(error_of(max_def(), {}), "[max] inputs: expected 1 or more, got 0");
}

TEST(Elementwise, MeanDividesByTheNumberOfInputs) {
  EXPECT_EQ(elements<float>(run_op(mean_def(), {row<float>({1, 2}), row<float>({3}), row<float>({5, 7})})),
            (std::vector<float>{3, 4}));
}

TEST(Elementwise, RoundTakesHalvesToEvenAndKeepsTheSignOfZero) {
  const Tensor y = run_op(round_def(), {row<float>({0.5F, 1.5F, 2.5F, -0.4F})});
  EXPECT_EQ(elements<float>(y), (std::vector<float>{0, 2, 2, 0}));
  EXPECT_TRUE(std::signbit(y.data<float>()[3]));
}

TEST(Elementwise, EqualComparesStringsAndNanEqualsNothing) {
  EXPECT_EQ(elements<bool>(run_op(equal_def(), {row<std::string>({"a", "b"}), row<std::string>({"a"})})),
            (std::vector<bool>{true, false}));
  EXPECT_EQ(elements<bool>(run_op(equal_def(), {row<float>({NAN, 0.0F}), row<float>({NAN, -0.0F})})),
            (std::vector<bool>{false, true}));
}

TEST(Elementwise, WhereMovesStringsAndComplexNumbers) {
  const Tensor condition = row<bool>({true, false});
  const Tensor strings = run_op(where_def(), {condition, row<std::string>({"yes", "y"}), row<std::string>({"no"})});
  EXPECT_EQ(elements<std::string>(strings), (std::vector<std::string>{"yes", "no"}));
  Tensor a = Tensor::zeros(DType::c128, {2});
  a.mutable_data<std::complex<double>>()[0] = {1, 2};
  Tensor b = Tensor::zeros(DType::c128, {1});
  b.mutable_data<std::complex<double>>()[0] = {5, 6};
  EXPECT_EQ(elements<std::complex<double>>(run_op(where_def(), {condition, a, b})),
            (std::vector<std::complex<double>>{{1, 2}, {5, 6}}));
}

TEST(Elementwise, ClipLetsTheUpperBoundWinAndChecksBounds) {
  const Tensor x = row<float>({-3, 0, 3, NAN});
  const Tensor y = run_op(clip_def(), {x, Tensor::scalar(2.0F), Tensor::scalar(1.0F)});
  EXPECT_EQ(y.data<float>()[0], 1);
  EXPECT_TRUE(std::isnan(y.data<float>()[3]));
  EXPECT_EQ(run_op(clip_def(), {x, Tensor(), Tensor::scalar(1.0F)}).data<float>()[0], -3);
  EXPECT_EQ(error_of(clip_def(), {x, row<float>({1, 2})}), "[clip] low: expected a scalar, got [2]");
}

TEST(Elementwise, PreluDoesNotStretchItsInput) {
  const Tensor x = row<float>({-2, 3});
  EXPECT_EQ(elements<float>(run_op(prelu_def(), {x, row<float>({0.5F})})), (std::vector<float>{-1, 3}));
  EXPECT_EQ(error_of(prelu_def(), {x, Tensor::zeros(DType::f32, {3, 2})}),
            "[prelu] slope: expected a shape that broadcasts to [2], got [3,2]");
}

TEST(Elementwise, IsInfLooksAtTheSignThatIsAskedFor) {
  const Tensor x = row<float>({kInf, -kInf, NAN, 0});
  EXPECT_EQ(elements<bool>(run_op(is_inf_def(), {x}, {{"detect_negative", int64_t{0}}})),
            (std::vector<bool>{true, false, false, false}));
  EXPECT_EQ(elements<bool>(run_op(is_nan_def(), {x})), (std::vector<bool>{false, false, true, false}));
}

TEST(Cast, FloatsOutOfRangeBecomeDefinedIntegers) {
  const Tensor x = row<float>({-1.9F, 3e9F, NAN, -kInf, 300});
  EXPECT_EQ(elements<int32_t>(run_op(cast_def(), {x}, {{"to", DType::i32}})),
            (std::vector<int32_t>{-1, 2147483647, 0, kLowest, 300}));
  EXPECT_EQ(elements<uint64_t>(run_op(cast_def(), {x}, {{"to", DType::u64}})),
            (std::vector<uint64_t>{0, 3000000000, 0, 0, 300}));
  EXPECT_EQ(run_op(cast_def(), {x}, {{"to", DType::u8}}).data<uint8_t>()[4], 44);  // 300 mod 256
  EXPECT_EQ(run_op(cast_def(), {x}, {{"to", DType::boolean}}).data<bool>()[2], true);
}

TEST(Cast, IntegersKeepTheirLowBits) {
  const Tensor y = run_op(cast_def(), {row<int16_t>({200, -9})}, {{"to", DType::i8}});
  EXPECT_EQ(elements<int8_t>(y), (std::vector<int8_t>{-56, -9}));
  const Tensor low = run_op(cast_def(), {row<int16_t>({8, -9})}, {{"to", DType::i4}});
  EXPECT_EQ(low.to_i64(), (std::vector<int64_t>{-8, 7}));
}

TEST(Cast, DoublesRoundOnceOnTheWayToHalf) {
  // 1 + 2^-11 + 2^-40 is above the midpoint of 1 and 1 + 2^-10; through f32 it would be the midpoint and round down.
  const Tensor y = run_op(cast_def(), {row<double>({1 + 0x1p-11 + 0x1p-40})}, {{"to", DType::f16}});
  EXPECT_EQ(y.to_f64()[0], 1 + 0x1p-10);
}

TEST(Cast, SaturateDecidesWhatOverflowsToEightBitFloats) {
  const Tensor x = row<float>({1e6F, -kInf});
  EXPECT_EQ(run_op(cast_def(), {x}, {{"to", DType::f8e4m3fn}}).to_f64(), (std::vector<double>{448, -448}));
  const Tensor y = run_op(cast_def(), {x}, {{"to", DType::f8e5m2}, {"saturate", int64_t{0}}});
  EXPECT_EQ(y.to_f64(), (std::vector<double>{kInf, -kInf}));
}

TEST(Cast, ScalesRoundToPowersOfTwoAsAsked) {
  const Tensor x = row<float>({0, 1.1F, 1.5F, 0x1.8p-127F});
  const auto cast_with = [&](const char* mode) {
    return run_op(cast_def(), {x}, {{"to", DType::f8e8m0}, {"round_mode", std::string(mode)}}).to_f64();
  };
  EXPECT_EQ(cast_with("up"), (std::vector<double>{0x1p-127, 2, 2, 0x1p-126}));
  EXPECT_EQ(cast_with("down"), (std::vector<double>{0x1p-127, 1, 1, 0x1p-127}));
  EXPECT_EQ(cast_with("nearest"), (std::vector<double>{0x1p-127, 1, 2, 0x1p-126}));
}

TEST(Cast, StringsAreReadAndWrittenAsDecimalNumbers) {
  const Tensor text = row<std::string>({" 3.5", "+inf", "-1e3", "nan", "18446744073709551615"});
  const Tensor real = run_op(cast_def(), {text}, {{"to", DType::f64}});
  EXPECT_EQ(real.data<double>()[0], 3.5);
  EXPECT_EQ(real.data<double>()[1], kInf);
  EXPECT_EQ(real.data<double>()[2], -1000);
  EXPECT_TRUE(std::isnan(real.data<double>()[3]));
  EXPECT_EQ(run_op(cast_def(), {text}, {{"to", DType::u64}}).data<uint64_t>()[4], 18446744073709551615U);
  EXPECT_EQ(elements<std::string>(run_op(cast_def(), {row<float>({0.1F, -kInf, 3})}, {{"to", DType::string}})),
            (std::vector<std::string>{"0.1", "-INF", "3"}));
  EXPECT_EQ(error_of(cast_def(), {row<std::string>({"four"})}, {{"to", DType::i32}}),
            "[cast] element: expected a number, got 'four'");
}

TEST(BitCast, KeepsBitsAndRejectsOtherWidths) {
  const Tensor y = run_op(bit_cast_def(), {row<float>({1, -0.0F})}, {{"to", DType::u32}});
  EXPECT_EQ(elements<uint32_t>(y), (std::vector<uint32_t>{0x3F800000, 0x80000000}));
  Tensor minus_one = Tensor::zeros(DType::i4, {1});
  minus_one.mutable_data<Int4>()[0] = Int4(-1);
  const Tensor low = run_op(bit_cast_def(), {minus_one}, {{"to", DType::u4}});
  EXPECT_EQ(low.to_i64(), (std::vector<int64_t>{15}));
  EXPECT_EQ(error_of(bit_cast_def(), {row<float>({1})}, {{"to", DType::i64}}),
            "[bit_cast] to: expected a dtype as wide as f32, got i64");
}

TEST(CastLike, DecomposesIntoACastToTheOtherDtype) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2}, "x");
  const Var like = input(graph, DType::i8, {}, "like");
  EXPECT_EQ(to_string(cast_like(x, like).type()), "i8[2]");
  Attributes attributes;
  complete_attributes(cast_like_def(), attributes, "");
  DecomposeContext context{graph, attributes, {x, like}, 1};
  EXPECT_EQ(to_string(cast_like_def().decompose(context).at(0).type()), "i8[2]");
}

}  // namespace
}  // namespace autograph

#include "autograph/tensor.h"

#include <gtest/gtest.h>

#include "autograph/error.h"

namespace autograph {
namespace {

TEST(Dim, ArithmeticIsExactOnNumbersAndTextualOnNames) {
  const Dim batch = Dim::symbol("batch");
  EXPECT_EQ(to_string(Dim(3) * Dim(4)), "12");
  EXPECT_EQ(to_string(batch * Dim(2)), "2*batch");
  EXPECT_TRUE((batch * Dim(2)).same_as(Dim(2) * batch));
  EXPECT_TRUE((batch - batch).same_as(Dim(0)));
  EXPECT_TRUE((batch * Dim(1)).same_as(batch));
  EXPECT_TRUE((batch + Dim::unknown()).is_unknown());
  EXPECT_FALSE(Dim::unknown().same_as(Dim::unknown()));
  EXPECT_THROW(Dim(3) - Dim(4), ShapeError);
  EXPECT_THROW(Dim(INT64_MAX) * Dim(2), ShapeError);
}

TEST(Shape, KnowsWhenItIsStatic) {
  EXPECT_EQ(*Shape({2, 3}).num_elements(), 6);
  EXPECT_FALSE(Shape({2, Dim::unknown()}).num_elements());
  EXPECT_FALSE(Shape::unknown().is_static());
  EXPECT_EQ(to_string(Type::sequence(Type(DType::f32, {Dim::symbol("n"), 2}))), "seq(f32[n,2])");
}

TEST(Tensor, SharesBuffersUntilCloned) {
  Tensor a = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Tensor b = a.reshaped({4});
  const Tensor c = a.clone();
  a.mutable_data<float>()[0] = 9;
  EXPECT_EQ(b.data<float>()[0], 9);
  EXPECT_EQ(c.data<float>()[0], 1);
  EXPECT_FALSE(a.bitwise_equal(c));
  EXPECT_NE(a.content_hash(), c.content_hash());
}

TEST(Tensor, RefusesWrongElementTypesCountsAndSizes) {
  const Tensor a = Tensor::of<float>({1}, {1});
  EXPECT_THROW(a.data<int32_t>(), TypeError);
  EXPECT_THROW(Tensor::of<float>({3}, {1, 2}), ShapeError);
  EXPECT_THROW(Tensor::zeros(DType::f32, {-1}), ShapeError);
  EXPECT_THROW(Tensor::zeros(DType::f64, {int64_t{1} << 61}), ShapeError);
  EXPECT_THROW(a.reshaped({2}), ShapeError);
}

TEST(Tensor, PartsShareTheBufferAndKeepIt) {
  Tensor part;
  {
    const Tensor whole = Tensor::of<float>({3, 2}, {0, 1, 2, 3, 4, 5});
    part = whole.part(2, {2, 2});
    EXPECT_EQ(part.raw(), whole.data<float>() + 2);
    EXPECT_EQ(part.buffer().size_bytes(), 16u);
    EXPECT_THROW(whole.part(3, {2, 2}), ShapeError);
    EXPECT_THROW(whole.part(-1, {1}), ShapeError);
    EXPECT_EQ(whole.part(6, {0, 2}).num_elements(), 0);
  }
  EXPECT_TRUE(part.bitwise_equal(Tensor::of<float>({2, 2}, {2, 3, 4, 5})));
  const Tensor strings = Tensor::of<std::string>({3}, {"a", "b", "c"});
  EXPECT_TRUE(strings.part(1, {2}).bitwise_equal(Tensor::of<std::string>({2}, {"b", "c"})));
}

TEST(Tensor, HoldsStringsAndEmptyExtents) {
  const Tensor s = Tensor::of<std::string>({2}, {"a", "long enough to live on the heap"});
  EXPECT_TRUE(s.clone().bitwise_equal(s));
  EXPECT_EQ(Tensor::zeros(DType::f32, {0, 5}).num_elements(), 0);
  EXPECT_EQ(Tensor::scalar<int64_t>(7).to_i64(), std::vector<int64_t>{7});
}

TEST(Datum, CopiesShareTheirList) {
  const Datum list(std::vector<Datum>{Tensor::scalar(1.0F), Tensor::scalar(2.0F)});
  const Datum copy = list;  // NOLINT: that it is one is what is tested
  EXPECT_EQ(&copy.sequence(), &list.sequence());
}

TEST(Datum, GivesItsListAwayOnlyWhereNobodyElseHoldsIt) {
  Datum list(std::vector<Datum>{Tensor::scalar(1.0F), Tensor::scalar(2.0F)});
  const Datum copy = list;  // NOLINT: it holds the list, too
  const Datum* const elements = copy.sequence().data();
  std::vector<Datum> taken = std::move(list).take_sequence();
  EXPECT_NE(taken.data(), elements);
  EXPECT_EQ(copy.sequence().size(), 2U);
  Datum alone(std::move(taken));
  const Datum* const own = alone.sequence().data();
  EXPECT_EQ(std::move(alone).take_sequence().data(), own);
}

TEST(Datum, ThrowsWhenAskedForTheWrongKind) {
  EXPECT_THROW(Datum().tensor(), TypeError);
  EXPECT_THROW(Datum(Tensor::scalar(1.0F)).sequence(), TypeError);
  EXPECT_THROW(Datum(Tensor::scalar(1.0F)).take_sequence(), TypeError);
}

}  // namespace
}  // namespace autograph

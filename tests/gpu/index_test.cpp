// Positions, as text, against a walk that counts.
#include "backends/gpu/emit/text/index.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cctype>

#include "autograph/random.h"
#include "backends/gpu/emit/emitted.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph::gpu {
namespace {

// Evaluates sums, products, quotients, remainders, parentheses and `i` by the rules of C.
class Calculator {
 public:
  Calculator(const std::string& text, int64_t i) : text_(text), i_(i) {}
  int64_t value() {
    const int64_t result = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return result;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == 'L')) ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    skip();
    return true;
  }
  int64_t sum() {
    int64_t total = product();
    while (take('+')) total += product();
    return total;
  }
  int64_t product() {
    int64_t total = factor();
    for (;;) {
      if (take('*'))
        total *= factor();
      else if (take('/'))
        total /= factor();
      else if (take('%'))
        total %= factor();
      else
        return total;
    }
  }
  int64_t factor() {
    if (take('(')) {
      const int64_t inner = sum();
      EXPECT_TRUE(take(')')) << text_;
      return inner;
    }
    if (take('-')) return -factor();
    if (take('i')) return i_;
    EXPECT_TRUE(at_ < text_.size() && std::isdigit(text_[at_])) << text_ << " at " << at_;
    int64_t number = 0;
    while (at_ < text_.size() && std::isdigit(text_[at_])) number = number * 10 + (text_[at_++] - '0');
    skip();
    return number;
  }

  std::string text_;
  int64_t i_;
  size_t at_ = 0;
};

int64_t walked(const Walk& walk, int64_t i) {
  int64_t at = walk.offset;
  for (size_t a = walk.extents.size(); a-- > 0;) {
    at += i % walk.extents[a] * walk.strides[a];
    i /= walk.extents[a];
  }
  return at;
}

TEST(Position, IsThatOfTheWalk) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    Walk walk;
    walk.extents = draw_dims(random, 0, 5, 4);
    for (size_t a = 0; a < walk.extents.size(); ++a) walk.strides.push_back(draw(random, -3, 12));
    if (draw_bool(random)) walk.strides = row_major_strides(walk.extents);
    walk.offset = draw(random, 0, 3) * 100;
    IndexType index;
    if (draw_bool(random)) index.cover(int64_t{1} << 40);
    const std::string text = position(index, "i", walk);
    for (int64_t i = 0; i < num_elements(walk.extents); ++i) {
      ASSERT_EQ(Calculator(text, i).value(), walked(walk, i)) << text << ", seed " << seed;
    }
  }
}

TEST(Position, OfAWholeTensorIsItsNumber) {
  EXPECT_EQ(position({}, "i", broadcast_walk({2, 3, 4}, {2, 3, 4})), "i");
  EXPECT_EQ(position({}, "i", broadcast_walk({1}, {2, 3, 4})), "0");
  EXPECT_EQ(position({}, "i", broadcast_walk({4}, {2, 3, 4})), "i % 4");
  EXPECT_EQ(position({}, "i", broadcast_walk({3, 1}, {2, 3, 4})), "((i / 4) % 3)");
}

TEST(Position, HasMoreThan32BitsWhereTheyAreNeeded) {
  IndexType index;
  index.cover(1 << 30);
  EXPECT_EQ(index.name(), "i32");
  index.cover((int64_t{1} << 31) - 1);
  EXPECT_EQ(index.name(), "i64");
  EXPECT_EQ(index.literal(int64_t{1} << 40), "1099511627776L");
}

// What repeats elements goes by way of twice the extent.
TEST(Position, HasRoomForWhatIsFoldedBack) {
  for (const char* mode : {"reflect", "wrap"}) {
    const Attributes attributes{{"mode", std::string(mode)}};
    const Dims dims{int64_t{3} << 29};
    const std::vector<Type> inputs{Type(DType::u8, Shape::of(dims)), Type(DType::i64, Shape::of({2}))};
    const std::vector<Type> outputs{Type(DType::u8, Shape::of({dims[0] + 2}))};
    const std::vector<Tensor> constants{Tensor(), Tensor::vector({1, 1})};
    const KernelCall call{
        .op = pad_def(), .attributes = attributes, .inputs = inputs, .outputs = outputs, .constants = constants};
    EXPECT_NE(emit(call, {}).source.find("typedef i64 Index;"), std::string::npos) << mode;
  }
}

// One window, one tap: a step is larger than all that there is.
TEST(Position, HasRoomForStepsOfWindows) {
  const Attributes attributes{{"kernel_shape", Dims{1}}, {"strides", Dims{int64_t{1} << 40}},
                              {"dilations", Dims{1}},    {"pads", Dims{0, 0}},
                              {"p", int64_t{2}},         {"ceil_mode", int64_t{0}}};
  const std::vector<Type> inputs{Type(DType::f32, Shape::of({1, 2, 4}))};
  const std::vector<Type> outputs{Type(DType::f32, Shape::of({1, 2, 1}))};
  const KernelCall call{
      .op = lp_pool_def(), .attributes = attributes, .inputs = inputs, .outputs = outputs, .constants = {}};
  EXPECT_NE(emit(call, {}).source.find("typedef i64 Index;"), std::string::npos);
}

}  // namespace
}  // namespace autograph::gpu

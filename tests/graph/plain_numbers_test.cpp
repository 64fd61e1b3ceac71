// Plain numbers beside values take their dtype, exactly or not at all.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "support/message_of.h"

namespace autograph {
namespace {

TEST(PlainNumbers, ThatAnIntegerDtypeDoesNotHaveAreRefused) {
  GraphBuilder g;
  const Var i32 = g.input("i32", DType::i32, {2}), u8 = g.input("u8", DType::u8, {2});
  const Var i64 = g.input("i64", DType::i64, {2}), u64 = g.input("u64", DType::u64, {2});
  EXPECT_NE(
      message_of<ValueError>([&] { i32 * 2.5; }).find("from -2147483648 to 2147483647, got 2.5 (cast the value first"),
      std::string::npos);
  EXPECT_NE(message_of<ValueError>([&] { i32 - 1e20; }), "");
  EXPECT_NE(message_of<ValueError>([&] { i32 + std::nan(""); }), "");
  EXPECT_NE(message_of<ValueError>([&] { i32 + std::numeric_limits<double>::infinity(); }), "");
  EXPECT_NE(message_of<ValueError>([&] { u8 - 1000; }), "");
  EXPECT_NE(message_of<ValueError>([&] { u8 + -1; }), "");
  EXPECT_NE(message_of<ValueError>([&] { i64 * 0x1p63; }), "");
  EXPECT_NE(message_of<ValueError>([&] { i64 + std::numeric_limits<uint64_t>::max(); }), "");
  EXPECT_NE(message_of<ValueError>([&] { u64 * 0x1p64; }), "");
}

TEST(PlainNumbers, AreExact) {
  GraphBuilder g;
  const Var i64 = g.input("i64", DType::i64, {1}), u64 = g.input("u64", DType::u64, {1});
  EXPECT_EQ(*scalar_like(i64, 9007199254740993).known()->data<int64_t>(), 9007199254740993);
  EXPECT_EQ(*scalar_like(i64, std::numeric_limits<int64_t>::min()).known()->data<int64_t>(),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*scalar_like(i64, -0x1p63).known()->data<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(*scalar_like(u64, std::numeric_limits<uint64_t>::max()).known()->data<uint64_t>(),
            std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(*scalar_like(g.input("u8", DType::u8, {}), 255.0).known()->data<uint8_t>(), 255);
  EXPECT_EQ(*scalar_like(g.input("f", DType::f32, {}), 2.5F).known()->data<float>(), 2.5F);
  EXPECT_TRUE(*scalar_like(g.input("b", DType::boolean, {}), true).known()->data<bool>());
  const Var text = g.input("text", DType::string, {});
  EXPECT_NE(message_of<TypeError>([&] { scalar_like(text, 1); }).find("got string[]"), std::string::npos);
}

}  // namespace
}  // namespace autograph

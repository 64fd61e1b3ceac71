#include <gtest/gtest.h>

#include <cstdint>

#include "base/check.h"
#include "base/checked_int.h"
#include "base/did_you_mean.h"
#include "base/hash.h"
#include "base/text/read_number.h"

namespace autograph {
namespace {

TEST(CheckedInt, ProductReportsOverflowAndNegativeDims) {
  EXPECT_EQ(checked_product(std::vector<int64_t>{2, 3, 4}, "t"), 24);
  EXPECT_EQ(checked_product(std::vector<int64_t>{}, "t"), 1);
  EXPECT_EQ(checked_product(std::vector<int64_t>{INT64_MAX, 0, INT64_MAX}, "t"), 0);
  EXPECT_THROW(checked_product(std::vector<int64_t>{int64_t{1} << 40, int64_t{1} << 40}, "t"), ShapeError);
  EXPECT_THROW(checked_product(std::vector<int64_t>{0, -1}, "t"), ShapeError);
  EXPECT_THROW(checked_add(INT64_MAX, 1, "t"), ShapeError);
}

TEST(DidYouMean, CountsEditsAndSwaps) {
  EXPECT_EQ(edit_distance("relu", "relu"), 0u);
  EXPECT_EQ(edit_distance("rleu", "relu"), 1u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
  EXPECT_EQ(did_you_mean("sofmax", {"softmax", "relu"}), " (did you mean 'softmax'?)");
  EXPECT_EQ(did_you_mean("MLP", {"mlp", "map"}), " (did you mean 'mlp'?)");
  EXPECT_EQ(nearest_or_all("mask", {"x", "ids", "x"}), " (there are: ids, x)");
  EXPECT_EQ(nearest_or_all("idz", {"x", "ids"}), " (did you mean 'ids'?)");
  EXPECT_EQ(nearest_or_all("mask", std::vector<std::string>()), "");
  EXPECT_EQ(did_you_mean("zzzzzz", {"softmax", "relu"}), "");
  EXPECT_EQ(did_you_mean("ab", {"a\nb\033"}), " (did you mean 'a\\nb\\x1b'?)");
}

TEST(Hash, DependsOnOrderAndContent) {
  const auto hash = [](std::initializer_list<int64_t> values) {
    Hasher hasher;
    for (const int64_t v : values) hasher.add(v);
    return hasher.finish();
  };
  EXPECT_EQ(hash({1, 2}), hash({1, 2}));
  EXPECT_NE(hash({1, 2}), hash({2, 1}));
  EXPECT_EQ(to_string(hash({1, 2})).size(), 32u);
}

TEST(Hash, IsReadAsItIsWritten) {
  const Hash128 hash = Hasher().add("x").finish();
  EXPECT_EQ(read_hash(to_string(hash)), hash);
  EXPECT_EQ(read_hash(to_string(hash) + "0"), std::nullopt);
  EXPECT_EQ(read_hash(std::string(31, '0') + "g"), std::nullopt);
  EXPECT_EQ(read_hash(std::string(15, '0') + "g" + std::string(16, '0')), std::nullopt);
}

TEST(ReadNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(read_number<int64_t>("-12"), -12);
  EXPECT_EQ(read_number<double>("2.5e3"), 2500.0);
  for (const std::string_view text : {"", " 1", "1 ", "+1", "1x", "0x1", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(read_number<int64_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(read_number<size_t>("-1"), std::nullopt);
}

TEST(Check, InternalErrorNamesThePlaceAndAsksForAReport) {
  try {
    AG_CHECK(1 + 1 == 3, "sum {}", 2);
    FAIL() << "passed";
  } catch (const InternalError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::internal);
    const std::string text = error.what();
    EXPECT_NE(text.find("base_test.cpp"), std::string::npos);
    EXPECT_NE(text.find("1 + 1 == 3: sum 2 (a bug in AutoGraph"), std::string::npos);
  }
}

}  // namespace
}  // namespace autograph

#include "schedule/memory/free_gaps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace autograph {
namespace {

// The same byte by byte.
class Bytes {
 public:
  size_t find_best(size_t bytes) const {
    size_t best = std::numeric_limits<size_t>::max();
    size_t best_size = best;
    size_t begin = 0;
    for (size_t at = 0; at <= used_.size(); ++at) {
      if (at < used_.size() && !used_[at]) continue;
      const size_t size = at - begin;
      if (size >= bytes && size < best_size && size > 0) {
        best = begin;
        best_size = size;
      }
      if (at == used_.size() && best_size == std::numeric_limits<size_t>::max()) return begin;
      begin = at + 1;
    }
    return best;
  }
  bool is_free(size_t begin, size_t end) const {
    return end <= used_.size() &&
           std::none_of(used_.begin() + static_cast<std::ptrdiff_t>(begin),
                        used_.begin() + static_cast<std::ptrdiff_t>(end), [](bool b) { return b; });
  }
  void set(size_t begin, size_t end, bool is_used) {
    if (end > used_.size()) used_.resize(end, false);
    std::fill(used_.begin() + static_cast<std::ptrdiff_t>(begin), used_.begin() + static_cast<std::ptrdiff_t>(end),
              is_used);
  }
  size_t peak() const { return used_.size(); }

 private:
  std::vector<bool> used_;
};

TEST(FreeGaps, AreThoseOfWalkingOverAllBytes) {
  std::mt19937_64 random(3);
  FreeGaps gaps;
  Bytes bytes;
  std::vector<std::pair<size_t, size_t>> blocks;
  size_t num_found_below = 0;
  for (int round = 0; round < 4000; ++round) {
    if (!blocks.empty() && random() % 2 == 0) {
      const size_t which = random() % blocks.size();
      gaps.give_back(blocks[which].first, blocks[which].second);
      bytes.set(blocks[which].first, blocks[which].second, false);
      blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
    }
    const size_t size = 1 + random() % 12;
    const size_t begin = gaps.find_best(size);
    ASSERT_EQ(begin, bytes.find_best(size)) << "round " << round;
    const size_t somewhere = random() % (bytes.peak() + 1);
    if (somewhere + size <= bytes.peak()) {
      ASSERT_EQ(gaps.is_free(somewhere, somewhere + size), bytes.is_free(somewhere, somewhere + size));
    }
    if (blocks.size() > 40) continue;
    num_found_below += begin + size <= bytes.peak() ? 1 : 0;
    gaps.take(begin, begin + size);
    bytes.set(begin, begin + size, true);
    blocks.emplace_back(begin, begin + size);
    ASSERT_EQ(gaps.peak(), bytes.peak());
  }
  EXPECT_GT(num_found_below, 100U);
}

// A block in the middle of a gap leaves both ends.
TEST(FreeGaps, AreSplitAndJoined) {
  FreeGaps gaps;
  gaps.take(0, 100);
  EXPECT_EQ(gaps.find_best(1), 100U) << "behind all blocks";
  gaps.give_back(0, 100);
  gaps.take(40, 50);
  EXPECT_EQ(gaps.find_best(45), 50U);
  EXPECT_EQ(gaps.find_best(40), 0U) << "the smaller one";
  EXPECT_EQ(gaps.find_best(60), 50U) << "that on top grows";
  EXPECT_FALSE(gaps.is_free(30, 41));
  gaps.give_back(40, 50);
  EXPECT_TRUE(gaps.is_free(0, 100));
  EXPECT_EQ(gaps.peak(), 100U);
}

}  // namespace
}  // namespace autograph

#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <vector>

namespace autograph {
namespace {

TEST(ParallelFor, DoesEveryPieceOnce) {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> done(100);
    parallel_for(done.size(), threads, [&](size_t i) { ++done[i]; });
    for (const auto& count : done) EXPECT_EQ(count, 1);
  }
}

TEST(ParallelFor, HasNothingToDoWithoutPieces) {
  parallel_for(0, 4, [](size_t) { FAIL(); });
}

TEST(ParallelFor, RethrowsTheFirstErrorAfterAllEnded) {
  std::atomic<int> done{0};
  try {
    parallel_for(50, 3, [&](size_t i) {
      ++done;
      if (i % 20 == 7) throw std::runtime_error("piece " + std::to_string(i));
    });
    FAIL() << "no exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "piece 7");
  }
  EXPECT_EQ(done, 50);
}

}  // namespace
}  // namespace autograph

#include "base/parallel_for.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>
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

TEST(ParallelFor, TheCallerDoesAllThatIsDoneBeforeOthersJoin) {
  const auto caller = std::this_thread::get_id();
  int num_done = 0;
  parallel_for(
      50, 3,
      [&](size_t) {
        EXPECT_EQ(std::this_thread::get_id(), caller);
        ++num_done;
      },
      std::chrono::hours(1));
  EXPECT_EQ(num_done, 50);
}

TEST(ParallelFor, OthersJoinWhenPiecesAreLeft) {
  constexpr std::chrono::milliseconds kAlone(1);
  std::vector<std::atomic<int>> done(8);
  std::atomic<int> inside = 0;
  parallel_for(
      done.size(), 2,
      [&](size_t i) {
        ++done[i];
        // The first piece outlasts the time alone; two of the others wait for each other.
        const auto end = std::chrono::steady_clock::now() + 2 * kAlone;
        while (i == 0 && std::chrono::steady_clock::now() < end) std::this_thread::yield();
        if (i == 1 || i == 2) {
          ++inside;
          while (inside < 2) std::this_thread::yield();
        }
      },
      kAlone);
  for (const auto& count : done) EXPECT_EQ(count, 1);
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

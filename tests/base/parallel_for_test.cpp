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

// A team of three, whatever it is asked for.
bool run_on_three(int threads, int threads_of_each, FunctionRef<void(int)> work) {
  if (threads > 3 || threads_of_each != 1) return false;
  std::vector<std::thread> team;
  for (int t = 0; t < threads; ++t) team.emplace_back([&work, t] { work(t); });
  for (std::thread& thread : team) thread.join();
  return true;
}

TEST(ParallelFor, WorksOnATeamOrWithoutWhereThatIsTooSmall) {
  for (const int threads : {3, 4}) {
    std::vector<std::atomic<int>> done(100);
    std::atomic<bool> caller_works = false;
    const auto caller = std::this_thread::get_id();
    const auto work = [&](size_t i) {
      ++done[i];
      if (std::this_thread::get_id() == caller) caller_works = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    };
    parallel_for(done.size(), threads, work, run_on_three);
    for (const auto& count : done) EXPECT_EQ(count, 1);
    EXPECT_EQ(caller_works, threads == 4);
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

// Units of steps: each is done once, whoever does it and however fast the threads are.
#include "backends/cpu/threads/step_units.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <thread>
#include <vector>

namespace autograph {
namespace {

// Runs `steps` steps of `count` units on `team` threads; returns how many units each thread did. A unit takes
// `pause_us` of its thread.
std::vector<int64_t> run_steps(int team, int64_t steps, int64_t count, bool help, const std::vector<int>& pause_us) {
  std::vector<TakenUnits> taken(static_cast<size_t>(team));
  std::vector<std::atomic<int>> done(static_cast<size_t>(steps * count));
  std::vector<int64_t> units_of(static_cast<size_t>(team));
  std::barrier barrier(team);
  std::vector<std::thread> threads;
  for (int t = 0; t < team; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t step = 0; step < steps; ++step) {
        StepUnits units(step, count, team, t, help ? taken.data() : nullptr);
        for (int64_t unit = units.next(); unit >= 0; unit = units.next()) {
          const int pause = pause_us[static_cast<size_t>(t) % pause_us.size()];
          if (pause > 0) std::this_thread::sleep_for(std::chrono::microseconds(pause));
          ++done[static_cast<size_t>(step * count + unit)];
          ++units_of[static_cast<size_t>(t)];
        }
        EXPECT_EQ(units.next(), -1);
        barrier.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < done.size(); ++i) EXPECT_EQ(done[i], 1) << "unit " << i;
  return units_of;
}

TEST(StepUnits, EachIsDoneOnce) {
  for (const int team : {1, 2, 3, 7}) {
    for (const int64_t count : {1, 2, 5, 32}) {
      for (const bool help : {false, true}) {
        SCOPED_TRACE(testing::Message() << team << " threads, " << count << " units, help " << help);
        run_steps(team, 10, count, help, {0});
        run_steps(team, 3, count, help, {100, 0});
      }
    }
  }
}

TEST(StepUnits, AThreadThatIsDoneHelpsASlowOne) {
  const std::vector<int64_t> units = run_steps(2, 2, 16, /*help=*/true, {20'000, 0});
  EXPECT_GT(units[1], 16);
  EXPECT_EQ(run_steps(2, 2, 16, /*help=*/false, {100, 0}), (std::vector<int64_t>{16, 16}));
}

TEST(StepUnits, EveryOtherStepGoesBack) {
  StepUnits there(0, 10, 2, 1, nullptr), back(1, 10, 2, 1, nullptr);
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(there.next(), 5 + i);
    EXPECT_EQ(back.next(), 9 - i);
  }
  EXPECT_EQ(there.next(), -1);
}

}  // namespace
}  // namespace autograph

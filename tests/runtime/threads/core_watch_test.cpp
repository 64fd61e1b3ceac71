// When runs take fewer threads and when all again, on a machine whose processors are told what to show.
#include "runtime/threads/core_watch.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/fake_cores.h"

namespace autograph {
namespace {

TEST(CoreWatch, NobodyElseIsNoLimit) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  for (int i = 0; i < 1000; ++i) {
    cores.pass(5'000, {.own = 1.9, .others = 0.05, .preemptions = i % 20 == 0 ? 1 : 0});
    EXPECT_EQ(watch.limit(), CoreWatch::kNoLimit);
  }
  // Almost never worth a look at the machine.
  EXPECT_LE(cores.looks(), 60);
}

TEST(CoreWatch, WhoDoesNotInterruptIsNoNeighbour) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  for (int i = 0; i < 1000; ++i) {
    cores.pass(5'000, {.own = 0.9, .others = 1.0, .preemptions = 0});
    EXPECT_EQ(watch.limit(), CoreWatch::kNoLimit);
  }
  EXPECT_EQ(cores.looks(), 0);
}

// Milliseconds until `watch` says `expected`, with the machine in a state.
int64_t ms_until(FakeCores& cores, CoreWatch& watch, int expected, const FakeCores::State& state) {
  for (int64_t ms = 0; ms < 10'000; ms += 5) {
    if (watch.limit() == expected) return ms;
    cores.pass(5'000, state);
  }
  return 10'000;
}

TEST(CoreWatch, ANeighbourTakesAThreadUntilItIsGone) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  cores.pass(3'000'000, {.own = 2});
  EXPECT_EQ(watch.limit(), CoreWatch::kNoLimit);
  // Two threads and a neighbour on two processors: it gets half of one, or a whole one where they share the other.
  const int64_t ms = ms_until(cores, watch, 1, {.own = 1.5, .others = 0.5, .preemptions = 1});
  EXPECT_GT(ms, 50);
  EXPECT_LT(ms, 300);
  for (int i = 0; i < 200; ++i) {
    cores.pass(5'000, {.own = 1, .others = 1});
    EXPECT_EQ(watch.limit(), 1);
  }
  EXPECT_LT(ms_until(cores, watch, CoreWatch::kNoLimit, {.own = 1}), 400);
  // And again.
  EXPECT_LT(ms_until(cores, watch, 1, {.own = 1, .others = 1, .preemptions = 1}), 300);
}

TEST(CoreWatch, ABreathOfTheNeighbourIsNoEnd) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  EXPECT_LT(ms_until(cores, watch, 1, {.own = 1, .others = 1, .preemptions = 1}), 300);
  for (int i = 0; i < 100; ++i) {
    cores.pass(5'000, {.own = 1, .others = i % 20 < 16 ? 1.0 : 0.0});
    EXPECT_EQ(watch.limit(), 1);
  }
}

// And is left with a number of threads that kernels have been attested with.
TEST(CoreWatch, LeavesAProcessorToEachNeighbour) {
  FakeCores cores(16);
  CoreWatch watch(cores);
  EXPECT_LT(ms_until(cores, watch, 12, {.own = 14, .others = 2.9, .preemptions = 4}), 300);
  EXPECT_LT(ms_until(cores, watch, 10, {.own = 11, .others = 5}), 300);
  EXPECT_LT(ms_until(cores, watch, 14, {.own = 11, .others = 1}), 300);
  EXPECT_LT(ms_until(cores, watch, 1, {.own = 0, .others = 40}), 300);
}

// What an idle program finds when it goes on is what was while it slept.
TEST(CoreWatch, LooksAgainAfterALongPause) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  EXPECT_LT(ms_until(cores, watch, 1, {.own = 1, .others = 1, .preemptions = 1}), 300);
  cores.pass(60'000'000, {});
  EXPECT_LT(ms_until(cores, watch, CoreWatch::kNoLimit, {.own = 1}), 400);
}

TEST(CoreWatch, ASystemThatDoesNotTellIsNoLimit) {
  FakeCores cores(2);
  CoreWatch watch(cores);
  EXPECT_LT(ms_until(cores, watch, 1, {.own = 1, .others = 1, .preemptions = 1}), 300);
  cores.hide();
  EXPECT_LT(ms_until(cores, watch, CoreWatch::kNoLimit, {.own = 1, .others = 1, .preemptions = 1}), 400);
  EXPECT_EQ(ms_until(cores, watch, 1, {.own = 1, .others = 1, .preemptions = 1}), 10'000);
}

TEST(CoreWatch, ManyRunsAtOnce) {
  FakeCores cores(2);
  cores.advance_when_asked(1'000, {.own = 1, .others = 1, .preemptions = 1});
  CoreWatch watch(cores);
  std::vector<std::thread> runs;
  for (int t = 0; t < 4; ++t) {
    runs.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) watch.limit();
    });
  }
  for (std::thread& run : runs) run.join();
  EXPECT_EQ(watch.limit(), 1);
}

cpu_set_t mask_of(std::initializer_list<size_t> cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const size_t cpu : cpus) CPU_SET(cpu, &mask);
  return mask;
}

TEST(CoreTimes, IdleTimeOfTheProcessorsInTheMask) {
  const std::string stat =
      "cpu  400 0 100 3000 50 0 0 30 0 0\n"
      "cpu0 300 0 50 1000 20 0 0 10 0 0\n"
      "cpu1 50 0 25 900 10 0 0 7 0 0\n"
      "cpu10 50 0 25 1100 20 0 0 13 0 0\n"
      "intr 5 6 7\n";
  EXPECT_EQ(parse_idle_us(stat, mask_of({0}), 100), 10'300'000);
  EXPECT_EQ(parse_idle_us(stat, mask_of({1, 10}), 100), 20'500'000);
  EXPECT_EQ(parse_idle_us(stat, mask_of({1, 10}), 1000), 2'050'000);
  EXPECT_EQ(parse_idle_us(stat, mask_of({3}), 100), std::nullopt);
  EXPECT_EQ(parse_idle_us(stat, mask_of({0}), 0), std::nullopt);
}

TEST(CoreTimes, OddTextIsNoTime) {
  for (const char* stat :
       {"", "cpu", "cpu\n", "cpux 1 2 3", "intr 1", "cpu99999999999999999999 1 2 3 4", "cpu-1 1 2 3"}) {
    EXPECT_EQ(parse_idle_us(stat, mask_of({0, 1}), 100), std::nullopt) << stat;
  }
  // What a kernel of long ago tells.
  EXPECT_EQ(parse_idle_us("cpu0 300 0 50 1000", mask_of({0}), 100), 10'000'000);
}

TEST(CoreTimes, OfThisMachine) {
  const SystemCores cores;
  EXPECT_GE(cores.cpus(), 1);
  const std::optional<CoreTimes> before = cores.times();
  if (!before) GTEST_SKIP() << "no /proc/stat";
  const int64_t start_us = cores.now_us();
  while (cores.now_us() < start_us + 50'000) {
  }
  const std::optional<CoreTimes> after = cores.times();
  ASSERT_TRUE(after);
  EXPECT_GT(after->wall_us, before->wall_us);
  EXPECT_GT(after->own_us, before->own_us);
}

}  // namespace
}  // namespace autograph

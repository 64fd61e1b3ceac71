#include "runtime/threads/stream_threads.h"

#include <gtest/gtest.h>

#include <barrier>
#include <set>
#include <thread>
#include <vector>

#include "runtime/threads/stream_sync.h"

namespace autograph {
namespace {

thread_local int threads_here = 1;

int set_threads(int threads) { return std::exchange(threads_here, threads); }

TEST(StreamThreads, AllStreamsAreAtWorkAtOnceEachOnAThreadOfItsOwn) {
  for (const int streams : {1, 2, 5, 3}) {
    // Nobody comes past the barrier before all are there.
    std::barrier<> barrier(streams);
    std::mutex mutex;
    std::set<std::thread::id> ids;
    std::set<int> numbers;
    const bool has_run = StreamThreads::of_process().run(streams, 7, set_threads, [&](int stream) {
      EXPECT_EQ(threads_here, 7);
      barrier.arrive_and_wait();
      const std::lock_guard lock(mutex);
      ids.insert(std::this_thread::get_id());
      numbers.insert(stream);
      if (stream == 0) threads_here = 99;
    });
    EXPECT_TRUE(has_run);
    EXPECT_EQ(ids.size(), static_cast<size_t>(streams));
    EXPECT_EQ(ids.count(std::this_thread::get_id()), 1U);
    EXPECT_EQ(*numbers.rbegin(), streams - 1);
    EXPECT_EQ(threads_here, 1);
  }
}

TEST(StreamThreads, RunsAtTheSameTimeHaveThreadsOfTheirOwn) {
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        std::barrier<> barrier(3);
        std::vector<int> calls(3, 0);
        const auto work = [&](int stream) {
          barrier.arrive_and_wait();
          ++calls[static_cast<size_t>(stream)];
        };
        EXPECT_TRUE(StreamThreads::of_process().run(3, 1, nullptr, work));
        EXPECT_EQ(calls, (std::vector<int>{1, 1, 1}));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Two steps, the second of which waits for the first.
Plan pair_of_steps() {
  Plan plan;
  plan.steps.resize(2);
  plan.steps[0].is_awaited = true;
  plan.steps[1].waits = {0};
  return plan;
}

TEST(StreamSync, AStepBeginsWhenWhatItWaitsForIsOverInThisRun) {
  const Plan plan = pair_of_steps();
  StreamSync sync(plan);
  for (const bool may_spin : {true, false, true}) {
    sync.begin_run();
    int value = 0;
    std::thread first([&] {
      std::this_thread::yield();
      value = 5;
      sync.finish(0);
    });
    EXPECT_TRUE(sync.wait_for_others(plan.steps[1], may_spin));
    EXPECT_EQ(value, 5);
    first.join();
  }
}

// Two streams that wait for each other in turns, asleep each time. Who is not woken sleeps until the test is stopped.
TEST(StreamSync, EveryStepThatIsOverWakesWhoWaitsForIt) {
  Plan plan = pair_of_steps();
  plan.steps[1].is_awaited = true;
  plan.steps[0].waits = {1};
  StreamSync there(plan);
  StreamSync back(plan);
  constexpr int kRuns = 20000;
  there.begin_run();
  back.begin_run();
  std::thread first([&] {
    for (int run = 0; run < kRuns; ++run) {
      there.wait_for_others(plan.steps[1], false);
      there.begin_run();
      back.finish(1);
    }
  });
  for (int run = 0; run < kRuns; ++run) {
    there.finish(0);
    back.wait_for_others(plan.steps[0], false);
    back.begin_run();
  }
  first.join();
  SUCCEED();
}

TEST(StreamSync, AFailureStopsThoseThatWaitAndIsForgottenInTheNextRun) {
  const Plan plan = pair_of_steps();
  StreamSync sync(plan);
  sync.begin_run();
  std::thread first([&] {
    try {
      throw 42;
    } catch (...) {
      sync.fail(0);
    }
    sync.finish(0);
  });
  EXPECT_FALSE(sync.wait_for_others(plan.steps[1], false));
  first.join();
  EXPECT_EQ(sync.failed_step(), 0U);
  EXPECT_THROW(std::rethrow_exception(sync.error()), int);
  sync.begin_run();
  EXPECT_FALSE(sync.error());
  EXPECT_TRUE(sync.wait_for_others(plan.steps[0], false));
}

TEST(StreamSync, OfSeveralFailuresThatOfTheFirstStepStays) {
  Plan plan;
  plan.steps.resize(5);
  StreamSync sync(plan);
  sync.begin_run();
  for (const int number : {3, 1, 4}) {
    try {
      throw number;
    } catch (...) {
      sync.fail(static_cast<uint32_t>(number));
    }
  }
  EXPECT_EQ(sync.failed_step(), 1U);
}

}  // namespace
}  // namespace autograph

#include "runtime/threads/core_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace autograph {
namespace {

// Many threads that each want `threads` of 4 processors; returns the most that were held at once.
int most_held(int threads, int num_callers) {
  CoreGate gate(4);
  std::atomic<int> held{0};
  std::atomic<int> most{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < num_callers; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const CoreGate::Pass pass(gate, threads);
        const int now = held += std::min(threads, 4);
        int seen = most;
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        held -= std::min(threads, 4);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return most;
}

TEST(CoreGate, NeverLendsMoreThanThereAre) {
  EXPECT_LE(most_held(1, 8), 4);
  EXPECT_LE(most_held(2, 6), 4);
  EXPECT_LE(most_held(3, 6), 3);
}

TEST(CoreGate, LendsAllToWhoeverWantsMore) { EXPECT_EQ(most_held(100, 3), 4); }

}  // namespace
}  // namespace autograph

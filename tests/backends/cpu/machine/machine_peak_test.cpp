// What the loops measure is checked for order only: the machine may be busy.
#include "autograph/machine_peak.h"

#include <gtest/gtest.h>

#include <limits>

namespace autograph {
namespace {

constexpr size_t kNoLimit = std::numeric_limits<size_t>::max();

MachinePeak two_threads() {
  MachinePeak peak;
  peak.compute = {{1, 100}, {2, 190}};
  peak.memory = {{"L2", 1, 500, 1000, 90, 70},
                 {"memory", 1, 9000, kNoLimit, 10, 9},
                 {"L2", 2, 500, 1000, 180, 140},
                 {"memory", 2, 4500, kNoLimit, 18, 15}};
  return peak;
}

TEST(MachinePeak, GflopsAreThoseOfTheNextThreadCountBelow) {
  const MachinePeak peak = two_threads();
  EXPECT_EQ(peak.gflops(1), 100);
  EXPECT_EQ(peak.gflops(2), 190);
  EXPECT_EQ(peak.gflops(7), 190);
  EXPECT_EQ(MachinePeak().gflops(1), 0);
}

TEST(MachinePeak, LevelIsTheSmallestThatHoldsTheShareOfAThread) {
  const MachinePeak peak = two_threads();
  EXPECT_EQ(peak.level_for(1000, 1)->read_gb_per_s, 90);
  EXPECT_EQ(peak.level_for(1001, 1)->read_gb_per_s, 10);
  EXPECT_EQ(peak.level_for(2000, 2)->read_gb_per_s, 180);
  EXPECT_EQ(peak.level_for(2001, 2)->read_gb_per_s, 18);
  EXPECT_EQ(MachinePeak().level_for(1, 1), nullptr);
}

TEST(MachinePeak, MeasuresEveryLevel) {
  const MachinePeak peak = measure_machine_peak(1);
  EXPECT_FALSE(peak.isa.empty());
  ASSERT_EQ(peak.compute.size(), 1u);
  EXPECT_GT(peak.compute[0].gflops, 0.1);
  ASSERT_GE(peak.memory.size(), 3u);
  for (const MemoryPeak& level : peak.memory) {
    EXPECT_EQ(level.threads, 1) << level.level;
    EXPECT_GT(level.read_gb_per_s, 0.01) << level.level;
    EXPECT_GT(level.copy_gb_per_s, 0.01) << level.level;
    EXPECT_LE(level.bytes_per_thread, level.capacity_per_thread) << level.level;
  }
}

}  // namespace
}  // namespace autograph

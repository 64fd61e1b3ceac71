#include "runtime/threads/cpu_count.h"

#include <gtest/gtest.h>

#include <thread>

namespace autograph {
namespace {

TEST(CpuQuota, RoundsUpToWholeCpus) {
  EXPECT_EQ(parse_cpu_quota("200000 100000"), 2);
  EXPECT_EQ(parse_cpu_quota("150000 100000\n"), 2);
  EXPECT_EQ(parse_cpu_quota("1 100000"), 1);
}

TEST(CpuQuota, ZeroMeansNoLimit) {
  for (const char* text : {"max 100000", "", "100000", "0 100000", "-1 100000", "100000 0", "a b"}) {
    EXPECT_EQ(parse_cpu_quota(text), 0) << text;
  }
}

TEST(CpuQuota, AbsurdQuotasStayInRange) { EXPECT_EQ(parse_cpu_quota("9223372036854775807 1"), 1 << 20); }

TEST(CpuCount, IsBetweenOneAndTheMachines) {
  EXPECT_GE(usable_cpu_count(), 1);
  const unsigned machine = std::thread::hardware_concurrency();
  EXPECT_TRUE(machine == 0 || usable_cpu_count() <= static_cast<int>(machine));
}

}  // namespace
}  // namespace autograph

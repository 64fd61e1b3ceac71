#include "report/profile_report.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace autograph {
namespace {

StepProfile step(const std::string& name, const std::string& op, double start_us, double duration_us, int stream = 0) {
  StepProfile result;
  result.name = name;
  result.op = op;
  result.start_us = start_us;
  result.duration_us = duration_us;
  result.stream = stream;
  return result;
}

// 100 GFLOP/s, 50 GB/s for up to 1000 bytes, 10 GB/s above.
MachinePeak machine() {
  MachinePeak peak;
  peak.compute = {{1, 100}};
  peak.memory = {{"L1", 1, 500, 1000, 50, 40}, {"memory", 1, 5000, std::numeric_limits<size_t>::max(), 8, 10}};
  return peak;
}

TEST(ProfileReport, SpeedsAreSharesOfThePeakOfTheLevelThatHoldsTheBytes) {
  StepProfile conv = step("c", "conv", 0, 2);
  conv.flops = 100'000;  // 2 us: 50 GFLOP/s
  conv.bytes = 1000;     // 0.5 GB/s
  const StepSpeed near = speed_of(conv, machine(), 1);
  EXPECT_DOUBLE_EQ(near.gflops, 50);
  EXPECT_DOUBLE_EQ(near.gb_per_s, 0.5);
  EXPECT_DOUBLE_EQ(near.compute_share, 0.5);
  EXPECT_DOUBLE_EQ(near.memory_share, 0.01);
  EXPECT_EQ(near.level, "L1");
  conv.bytes = 10'000;
  const StepSpeed far = speed_of(conv, machine(), 1);
  EXPECT_EQ(far.level, "memory");
  EXPECT_DOUBLE_EQ(far.memory_share, 0.5);
}

TEST(ProfileReport, WorkThatIsNotKnownHasNoSpeed) {
  const StepSpeed speed = speed_of(step("x", "loop", 0, 2), machine(), 1);
  EXPECT_EQ(speed.gflops, 0);
  EXPECT_EQ(speed.level, "");
  EXPECT_EQ(speed_of(step("x", "loop", 0, 0), machine(), 1).gflops, 0);
}

TEST(ProfileReport, GapsBetweenKernelsCountOnceStreamsSideBySideToo) {
  // Stream 0: [10, 14] and [20, 30]; stream 1: [12, 18].
  const RunTimes times = run_times({step("b", "relu", 20, 10), step("a", "relu", 10, 4), step("s", "relu", 12, 6, 1)});
  EXPECT_DOUBLE_EQ(times.kernels_us, 20);
  EXPECT_DOUBLE_EQ(times.busy_us, 18);
  EXPECT_DOUBLE_EQ(times.run_us, 20);
  EXPECT_DOUBLE_EQ(times.between_share(), 0.1);
  EXPECT_EQ(run_times({}).between_share(), 0);
}

TEST(ProfileReport, TextHasStepsSumsRefusalsAndTheTimeBetween) {
  ProfileReport report;
  report.peak = machine();
  report.steps = {step("big", "conv", 0, 3000), step("small", "conv", 3250, 500), step("r", "relu", 4000, 1000)};
  report.steps[0].kernel = "cpu.direct 3x3";
  report.steps[0].layout = "blocked16";
  report.steps[0].flops = 150e6;
  report.steps[0].bytes = 6e6;
  report.steps[0].choice = 1;
  report.steps[1].choice = 1;
  report.choices = {{"r", "relu", "cpu.relu", {}}, {"big", "conv", "cpu.direct", {"cpu.winograd: stride 2"}}};
  EXPECT_EQ(profile_text(report, 1, false),
            "   ms   share  GFLOP/s  GB/s       of peak  op    kernel          layout     node\n"
            "3.000  66.7 %     50.0  2.00  50 % compute  conv  cpu.direct 3x3  blocked16  big\n"
            "(2 more)\n"
            "\n"
            "op    kernel      count     ms   share  GFLOP/s  GB/s\n"
            "conv  cpu.direct      1  3.000  66.7 %     50.0  2.00\n"
            "relu                  1  1.000  22.2 %        -     -\n"
            "conv                  1  0.500  11.1 %        -     -\n"
            "\n"
            "   ms  nodes  op    kernel not taken, and why\n"
            "3.500      2  conv  cpu.winograd: stride 2\n"
            "\n"
            "kernels 4.5 ms in a run of 5 ms: 10.0 % between kernels; threads 1, peak 100.0 GFLOP/s\n");
}

}  // namespace
}  // namespace autograph

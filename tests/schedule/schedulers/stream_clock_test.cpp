#include "schedule/schedulers/stream_clock.h"

#include <gtest/gtest.h>

#include <numeric>

#include "autograph/error.h"
#include "autograph/random.h"

namespace autograph {
namespace {

ClockKernel kernel(size_t stream, double work_us, double sms_part = 0.5, std::vector<size_t> waits = {}) {
  return {.work_us = work_us, .sms_part = sms_part, .stream = stream, .waits = std::move(waits)};
}

using Times = std::vector<double>;

TEST(StreamClock, RunsTwoHalvesInTheTimeOfOne) {
  const ClockReport report = run_clock({kernel(0, 10), kernel(1, 10)}, 0);
  EXPECT_EQ(report.end_us, (Times{10, 10}));
  EXPECT_EQ(report.max_running, 2u);
  EXPECT_EQ(report.sms_us, 10);
}

TEST(StreamClock, AddsUpAChain) {
  const ClockReport report = run_clock({kernel(0, 10), kernel(0, 5), kernel(0, 7)}, 3);
  EXPECT_EQ(report.start_us, (Times{0, 10, 15}));
  EXPECT_EQ(report.end_us, (Times{10, 15, 22}));
  EXPECT_EQ(report.max_running, 1u);
}

TEST(StreamClock, SlowsAllDownWhereTheyAskForMoreThanThereIs) {
  // 1.5 devices are asked for: each works at two thirds of its speed.
  const ClockReport report = run_clock({kernel(0, 10), kernel(1, 10), kernel(2, 10)}, 0);
  for (const double end : report.end_us) EXPECT_DOUBLE_EQ(end, 15);
}

TEST(StreamClock, SpeedsUpWhenAnotherEnds) {
  // Together 1.25 devices, so that the second ends at 5 * 1.25; the first has done 5 by then and goes on alone.
  const ClockReport report = run_clock({kernel(0, 10, 0.5), kernel(1, 5, 0.75)}, 0);
  EXPECT_DOUBLE_EQ(report.end_us[1], 6.25);
  EXPECT_DOUBLE_EQ(report.end_us[0], 11.25);
}

TEST(StreamClock, SharesBandwidthToo) {
  std::vector<ClockKernel> kernels = {kernel(0, 10, 0.1), kernel(1, 10, 0.1)};
  for (ClockKernel& k : kernels) k.bytes_part = 1;
  const ClockReport report = run_clock(kernels, 0);
  EXPECT_EQ(report.end_us, (Times{20, 20}));
  EXPECT_EQ(report.bytes_us, 20);
}

TEST(StreamClock, StartsBesideWork) {
  // The second kernel's start needs no processors; then both fill the device and take twice as long.
  std::vector<ClockKernel> kernels = {kernel(0, 10, 1), kernel(1, 10, 1)};
  kernels[1].start_us = 4;
  const ClockReport report = run_clock(kernels, 0);
  EXPECT_DOUBLE_EQ(report.end_us[0], 16);
  EXPECT_DOUBLE_EQ(report.end_us[1], 20);
  EXPECT_EQ(report.start_us[1], 0);
}

TEST(StreamClock, WaitsForOtherStreams) {
  std::vector<ClockKernel> kernels = {kernel(0, 10), kernel(1, 2), kernel(1, 5, 0.5, {0})};
  kernels[2].start_us = 1;
  const ClockReport report = run_clock(kernels, 3);
  EXPECT_EQ(report.start_us, (Times{0, 0, 13}));
  EXPECT_EQ(report.end_us, (Times{10, 2, 19}));
}

TEST(StreamClock, WaitsForTheHost) {
  std::vector<ClockKernel> kernels = {kernel(0, 1), kernel(0, 1)};
  kernels[0].launched_us = 5;
  kernels[1].launched_us = 10;
  EXPECT_EQ(run_clock(kernels, 0).end_us, (Times{6, 11}));
}

TEST(StreamClock, TakesKernelsWithoutWork) {
  std::vector<ClockKernel> kernels = {kernel(0, 0), kernel(0, 0), kernel(1, 0, 0, {1})};
  kernels[1].start_us = 2;
  EXPECT_EQ(run_clock(kernels, 1).end_us, (Times{0, 2, 3}));
  EXPECT_TRUE(run_clock({}, 1).end_us.empty());
}

TEST(StreamClock, RefusesCircles) {
  EXPECT_THROW(run_clock({kernel(0, 1, 0.5, {1}), kernel(1, 1, 0.5, {0})}, 0), InternalError);
}

// Whatever happens: no kernel before its time, no work lost or made, nothing faster than alone or than the whole
// device.
TEST(StreamClock, KeepsItsBooks) {
  Random random(41);
  const auto draw = [&](double low, double high) { return std::uniform_real_distribution<double>(low, high)(random); };
  for (int run = 0; run < 2000; ++run) {
    std::vector<ClockKernel> kernels(static_cast<size_t>(draw(1, 25)));
    const double sync_us = draw(0, 2);
    double sms_us = 0, bytes_us = 0, sum_us = 0;
    for (size_t k = 0; k < kernels.size(); ++k) {
      kernels[k] = kernel(static_cast<size_t>(draw(0, 4)), draw(0, 10), draw(0.01, 1));
      kernels[k].start_us = draw(0, 2);
      kernels[k].bytes_part = draw(0, 1);
      for (size_t source = 0; source < k; ++source) {
        if (kernels[source].stream != kernels[k].stream && draw(0, 1) < 0.2) kernels[k].waits.push_back(source);
      }
      sms_us += kernels[k].work_us * kernels[k].sms_part;
      bytes_us += kernels[k].work_us * kernels[k].bytes_part;
      sum_us += kernels[k].start_us + kernels[k].work_us + sync_us;
    }
    const ClockReport report = run_clock(kernels, sync_us);
    ASSERT_NEAR(report.sms_us, sms_us, 1e-6);
    ASSERT_NEAR(report.bytes_us, bytes_us, 1e-6);
    double end_us = 0;
    std::vector<double> free_us(5, 0);
    for (size_t k = 0; k < kernels.size(); ++k) {
      const ClockKernel& one = kernels[k];
      double ready_us = free_us[one.stream];
      for (const size_t source : one.waits) ready_us = std::max(ready_us, report.end_us[source] + sync_us);
      ASSERT_EQ(report.start_us[k], ready_us);
      ASSERT_GE(report.end_us[k], ready_us + one.start_us + one.work_us - 1e-9);
      free_us[one.stream] = report.end_us[k];
      end_us = std::max(end_us, report.end_us[k]);
    }
    ASSERT_GE(end_us, std::max(sms_us, bytes_us) - 1e-9);
    // Sharing is in proportion to the larger of two demands, which never wastes more than both took.
    ASSERT_LE(end_us, sum_us + sms_us + bytes_us + 1e-9);
  }
}

}  // namespace
}  // namespace autograph

#include "cost/fit_alpha.h"

#include <gtest/gtest.h>

#include <vector>

namespace autograph {
namespace {

// Graphs of different widths whose latency is exactly a * critical path + b * sum.
std::vector<LatencySample> samples_of(double a, double b, size_t count) {
  std::vector<LatencySample> samples;
  for (size_t i = 0; i < count; ++i) {
    const double critical = 100 + 37 * static_cast<double>(i);
    const double sum = critical * (1 + static_cast<double>(i % 5));
    samples.push_back({sum, critical, a * critical + b * sum});
  }
  return samples;
}

TEST(FitAlpha, FindsTheRatioThatMadeTheSamples) {
  EXPECT_NEAR(*fit_alpha(samples_of(0.6, 0.4, 20)), 1.5, 1e-9);
  EXPECT_NEAR(*fit_alpha(samples_of(0.1, 0.9, 20)), 1.0 / 9, 1e-9);
}

TEST(FitAlpha, StaysWithinItsBounds) {
  EXPECT_EQ(*fit_alpha(samples_of(0, 1, 20)), 0);
  EXPECT_EQ(*fit_alpha(samples_of(1, 0, 20)), kMaxAlpha);
  EXPECT_EQ(*fit_alpha(samples_of(-0.2, 1, 20)), 0);
}

TEST(FitAlpha, SaysNothingWhereSamplesTellNothing) {
  EXPECT_FALSE(fit_alpha({}));
  EXPECT_FALSE(fit_alpha(samples_of(0.5, 0.5, 4)));
  std::vector<LatencySample> chains;  // critical path and sum are the same
  for (int i = 1; i < 30; ++i) chains.push_back({10.0 * i, 10.0 * i, 10.0 * i});
  EXPECT_FALSE(fit_alpha(chains));
}

}  // namespace
}  // namespace autograph

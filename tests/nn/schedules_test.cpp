// Schedules against the numbers of torch.optim.lr_scheduler.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "autograph/error.h"
#include "autograph/nn/schedules.h"
#include "support/message_of.h"

namespace autograph::nn {
namespace {

TEST(Schedules, StepDecay) {
  const Schedule schedule = step_decay(0.1, 3, 0.5);
  EXPECT_DOUBLE_EQ(schedule(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule(2), 0.1);
  EXPECT_DOUBLE_EQ(schedule(3), 0.05);
  EXPECT_DOUBLE_EQ(schedule(8), 0.025);
}

TEST(Schedules, CosineFallsToTheLowest) {
  const Schedule schedule = cosine(1, 10, 0.2);
  EXPECT_DOUBLE_EQ(schedule(0), 1);
  EXPECT_DOUBLE_EQ(schedule(5), 0.6);
  EXPECT_DOUBLE_EQ(schedule(3), 0.2 + 0.4 * (1 + std::cos(std::numbers::pi * 0.3)));
  EXPECT_DOUBLE_EQ(schedule(10), 0.2);
  EXPECT_DOUBLE_EQ(schedule(99), 0.2);
}

TEST(Schedules, WarmUpIsALine) {
  const Schedule schedule = warm_up(constant_rate(2), 4);
  EXPECT_DOUBLE_EQ(schedule(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule(2), 1.5);
  EXPECT_DOUBLE_EQ(schedule(3), 2);
  EXPECT_DOUBLE_EQ(schedule(50), 2);
}

// OneCycleLR(max_lr=1, total_steps=11): step 0 is 1/25, the top lies at 0.3 * 11 - 1, the end is 1/25/1e4.
TEST(Schedules, OneCycle) {
  const Schedule schedule = one_cycle(1, 11);
  const double first = 1.0 / 25, last = first / 1e4, top = 0.3 * 11 - 1;
  const auto along = [](double from, double to, double part) {
    return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
  };
  EXPECT_NEAR(schedule(0), first, 1e-15);
  EXPECT_NEAR(schedule(2), along(first, 1, 2 / top), 1e-15);
  EXPECT_NEAR(schedule(7), along(1, last, (7 - top) / (10 - top)), 1e-15);
  EXPECT_NEAR(schedule(10), last, 1e-15);
}

TEST(Schedules, PlateauWaits) {
  Plateau plateau(1, 0.5, 2);
  EXPECT_EQ(plateau.next(1.0), 1);
  EXPECT_EQ(plateau.next(1.0), 1);
  EXPECT_EQ(plateau.next(0.99999), 1);  // less than the threshold better
  EXPECT_EQ(plateau.next(1.1), 0.5);
  EXPECT_EQ(plateau.next(0.9), 0.5);
  EXPECT_EQ(plateau.next(0.8), 0.5);
}

TEST(Schedules, ByName) {
  EXPECT_DOUBLE_EQ(find_schedule("constant", 0.3, 10)(7), 0.3);
  EXPECT_DOUBLE_EQ(find_schedule("step", 1, 9)(3), 0.1);
  EXPECT_DOUBLE_EQ(find_schedule("cosine", 1, 10, 2)(0), 0.5);
  EXPECT_EQ(message_of<ValueError>([] { find_schedule("cosin", 1, 10); }),
            "[nn] schedule: expected constant, step, cosine or one_cycle, got 'cosin' (did you mean 'cosine'?)");
  EXPECT_EQ(message_of<ValueError>([] { cosine(1, 0); }), "[nn] cosine: expected 1 step or more, got 0");
}

void expect_rates(const Schedule& schedule, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(schedule(static_cast<int64_t>(i)), expected[i], 1e-9) << i;
}

// What torch's schedulers give from a rate of 0.3, here in the order of their options.
TEST(Schedules, OthersAreTorchs) {
  expect_rates(cosine_restarts(0.3, 4, 1, 0.02),
               {0.3, 0.258994949, 0.16, 0.0610050506, 0.3, 0.258994949, 0.16, 0.0610050506, 0.3, 0.258994949, 0.16,
                0.0610050506, 0.3, 0.258994949});
  expect_rates(cosine_restarts(0.3, 2, 2), {0.3, 0.15, 0.3, 0.256066017, 0.15, 0.0439339828, 0.3, 0.28858193,
                                            0.256066017, 0.207402515, 0.15, 0.0925974851, 0.0439339828, 0.0114180701});
  expect_rates(multi_step(0.3, {3, 7, 7, 11}, 0.5),
               {0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.15, 0.0375, 0.0375, 0.0375, 0.0375, 0.01875, 0.01875, 0.01875});
  expect_rates(linear(0.3, 5), {0.1, 0.14, 0.18, 0.22, 0.26, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3});
  expect_rates(polynomial(0.3, 6, 2),
               {0.3, 0.208333333, 0.133333333, 0.075, 0.0333333333, 0.00833333333, 0, 0, 0, 0, 0, 0, 0, 0});
  expect_rates(in_turn({linear(0.3, 4, 0.25), cosine_restarts(0.3, 3), step_decay(0.3, 2, 0.5)}, {4, 9}),
               {0.075, 0.13125, 0.1875, 0.24375, 0.3, 0.225, 0.075, 0.3, 0.225, 0.3, 0.3, 0.15, 0.15, 0.075});
  EXPECT_EQ(message_of<ValueError>([] {
              in_turn({constant_rate(1), constant_rate(2)}, {});
            }),
            "[nn] in_turn: expected a milestone between each two schedules, got 0 of 2");
  EXPECT_EQ(message_of<ValueError>([] { cosine_restarts(1, 4, 0); }),
            "[nn] cosine_restarts: expected a factor of 1 or more, got 0");
}

}  // namespace
}  // namespace autograph::nn

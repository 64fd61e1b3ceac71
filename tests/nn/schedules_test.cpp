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

}  // namespace
}  // namespace autograph::nn

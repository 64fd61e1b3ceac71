#include "base/time_in_turns.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace autograph {
namespace {

TEST(TimeInTurns, AsksAllInTurns) {
  std::string order;
  const std::function<void()> runs[] = {[&] { order += 'a'; }, [&] { order += 'b'; }};
  const RoundTimes times = time_in_turns(runs, {.seconds = 0, .min_rounds = 3, .max_rounds = 3});
  EXPECT_EQ(order, "abababab");  // once before the first round
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].size(), 3u);
}

TEST(TimeInTurns, MediansAreOfTimesRelativeToTheirRound) {
  EXPECT_DOUBLE_EQ(medians({{3, 1, 2}})[0], 2);
  // The second is always slower by half, while the machine slows down between the two of the third round.
  const std::vector<double> ms = medians({{2, 4, 6, 2}, {3, 6, 18, 3}});
  EXPECT_DOUBLE_EQ(ms[1] / ms[0], 1.5);
}

TEST(TimeInTurns, EndsWhenItIsEnough) {
  int count = 0;
  const std::function<void()> runs[] = {[&] { ++count; }};
  Turns turns{.seconds = 0, .min_rounds = 5, .max_rounds = 9};
  turns.is_enough = [](const RoundTimes& times) { return times[0].size() == 2; };
  time_in_turns(runs, turns);
  EXPECT_EQ(count, 3);
}

TEST(TimeInTurns, EndsBetweenItsBoundsWhenTimeIsOver) {
  int count = 0;
  const std::function<void()> runs[] = {[&] { ++count; }};
  time_in_turns(runs, {.seconds = 0, .min_rounds = 4, .max_rounds = 9});
  EXPECT_EQ(count, 5);
}

}  // namespace
}  // namespace autograph

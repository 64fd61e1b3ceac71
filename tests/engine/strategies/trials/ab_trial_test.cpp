#include "engine/strategies/trials/ab_trial.h"

#include <gtest/gtest.h>

#include <random>

namespace autograph {
namespace {

// Rounds of two contestants whose times differ by `noise` from round to round; the second one takes `ratio` of the time
// of the first.
RoundTimes draw_rounds(std::mt19937& random, double ratio, double noise, int rounds) {
  std::lognormal_distribution<double> drift(0, noise / 2);
  std::lognormal_distribution<double> machine(0, 0.3);  // hits both alike
  RoundTimes times(2);
  for (int round = 0; round < rounds; ++round) {
    const double ms = 10 * machine(random);
    times[0].push_back(ms * drift(random));
    times[1].push_back(ms * ratio * drift(random));
  }
  return times;
}

// Share of A/B trials that the second one wins, and the rounds that they take.
struct Outcome {
  double wins = 0;
  double rounds = 0;
};

Outcome fight(double ratio, double noise) {
  constexpr int kTrials = 2000;
  std::mt19937 random(7);
  Outcome outcome;
  for (int i = 0; i < kTrials; ++i) {
    const RoundTimes all = draw_rounds(random, ratio, noise, kMaxTrialRounds);
    RoundTimes times(2);
    AbTrial ab_trial;
    for (size_t round = 0; round < all[0].size(); ++round) {
      for (size_t who : {0, 1}) times[who].push_back(all[who][round]);
      ab_trial = AbTrial::from(times);
      if (is_one_sided(times) || ab_trial.is_decided(kLeastGain)) break;
    }
    outcome.wins += ab_trial.is_won(kLeastGain) ? 1 : 0;
    outcome.rounds += static_cast<double>(ab_trial.rounds);
  }
  return {outcome.wins / kTrials, outcome.rounds / kTrials};
}

TEST(AbTrial, CountsRoundsAndWins) {
  const AbTrial ab_trial = AbTrial::from({{10, 20, 10, 10}, {9, 18, 11, 9}});
  EXPECT_EQ(ab_trial.rounds, 4U);
  EXPECT_DOUBLE_EQ(ab_trial.wins, 0.75);
  EXPECT_NEAR(ab_trial.second_ms / ab_trial.first_ms, 0.9, 1e-9);
  EXPECT_FALSE(ab_trial.is_decided(kLeastGain)) << "too few rounds";
  EXPECT_FALSE(ab_trial.is_won(kLeastGain)) << "three of four is luck";
  EXPECT_TRUE(ab_trial.is_won(kLeastGain, 0.7));
  EXPECT_FALSE(ab_trial.is_won(0.2, 0.7)) << "gains a tenth";
}

TEST(AbTrial, ClearResultsEndAtOnce) {
  EXPECT_TRUE(is_one_sided({{10, 10}, {8, 8}}));
  EXPECT_TRUE(AbTrial::from({{10, 10}, {8, 8}}).is_won(kLeastGain));
  EXPECT_TRUE(is_one_sided({{8, 8}, {10, 10}}));
  EXPECT_TRUE(is_one_sided({{10, 10, 10}, {10.1, 10.2, 10.1}})) << "never won";
  EXPECT_FALSE(is_one_sided({{10, 10}, {8, 9.5}}));
  EXPECT_FALSE(is_one_sided({{10, 10, 10}, {9.9, 10.2, 10.1}}));
}

// The share of wins grows with the gain, and what is equal or slower wins seldom.
TEST(AbTrial, TellsSmallGainsFromNoise) {
  constexpr double kNoise = 0.06;
  const Outcome gains_four = fight(0.96, kNoise);
  const Outcome equal = fight(1.0, kNoise);
  const Outcome loses_two = fight(1.02, kNoise);
  EXPECT_GT(gains_four.wins, 0.85);
  EXPECT_LT(equal.wins, 0.3);
  EXPECT_LT(loses_two.wins, 0.1);
  EXPECT_LT(gains_four.rounds, kMaxTrialRounds / 2.0) << "a clear winner should end the trial";
  EXPECT_LT(loses_two.rounds, kMaxTrialRounds / 2.0);
}

TEST(AbTrial, WithoutNoiseTheFasterOneWins) {
  EXPECT_EQ(fight(0.99, 0).wins, 1);
  EXPECT_EQ(fight(1.0, 0).wins, 0);
  EXPECT_EQ(fight(0.998, 0).wins, 0) << "gains less than what counts";
}

}  // namespace
}  // namespace autograph

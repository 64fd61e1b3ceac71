#include "engine/strategies/trials/ab_trial.h"

#include <gtest/gtest.h>

#include <cmath>
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

AbTrial draw_trial(std::mt19937& random, double ratio, double noise, int max_rounds) {
  const RoundTimes all = draw_rounds(random, ratio, noise, max_rounds);
  RoundTimes times(2);
  AbTrial ab_trial;
  for (size_t round = 0; round < all[0].size(); ++round) {
    for (size_t who : {0, 1}) times[who].push_back(all[who][round]);
    ab_trial = AbTrial::from(times);
    if (is_one_sided(times) || ab_trial.is_decided(kLeastGain)) break;
  }
  return ab_trial;
}

constexpr int kTrials = 2000;

Outcome fight(double ratio, double noise) {
  std::mt19937 random(7);
  Outcome outcome;
  for (int i = 0; i < kTrials; ++i) {
    const AbTrial ab_trial = draw_trial(random, ratio, noise, kMaxTrialRounds);
    outcome.wins += ab_trial.is_won(kLeastGain) ? 1 : 0;
    outcome.rounds += static_cast<double>(ab_trial.rounds);
  }
  return {outcome.wins / kTrials, outcome.rounds / kTrials};
}

// Share of wins where what is promising is repeated by plans made anew, each making 1 % faster or slower by itself.
double wins_of_repeated(double ratio, double noise, int max_rounds) {
  std::mt19937 random(7);
  std::lognormal_distribution<double> making(0, 0.014);
  int wins = 0;
  for (int i = 0; i < kTrials; ++i) {
    const AbTrial first = draw_trial(random, ratio * making(random), noise, max_rounds);
    if (!first.is_promising(kLeastGain)) continue;
    const AbTrial again = draw_trial(random, ratio * making(random), noise, max_rounds);
    wins += first.with_repetition(again).is_won_twice(kLeastGain) ? 1 : 0;
  }
  return static_cast<double>(wins) / kTrials;
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

TEST(AbTrial, RepetitionCountsAsMuchAsTheFirstTrial) {
  const AbTrial both = AbTrial{10, 9, 1, 5}.with_repetition({10, 10, 0.4, 15});
  EXPECT_EQ(both.rounds, 20U);
  EXPECT_DOUBLE_EQ(both.wins, 0.55);
  EXPECT_NEAR(both.second_ms / both.first_ms, std::sqrt(0.9), 1e-12);
  EXPECT_FALSE(both.is_won_twice(kLeastGain)) << "55 % of 20 rounds are luck";
  EXPECT_TRUE((AbTrial{10, 9, 0.6, 20}.is_won_twice(kLeastGain)));
  EXPECT_FALSE((AbTrial{10, 9.99, 0.6, 20}.is_won_twice(kLeastGain))) << "hardly a gain";
}

// Of plans that are slow there is time for five rounds: what gains 3 % must not be lost for that.
TEST(AbTrial, FewRoundsTakeSmallGains) {
  constexpr double kNoise = 0.06;
  constexpr int kFewRounds = 5;
  EXPECT_GT(wins_of_repeated(0.97, kNoise, kFewRounds), 0.6);
  EXPECT_GT(wins_of_repeated(0.95, kNoise, kFewRounds), 0.85);
  EXPECT_LT(wins_of_repeated(1.0, kNoise, kFewRounds), 0.25);
  EXPECT_LT(wins_of_repeated(1.02, kNoise, kFewRounds), 0.05);
  EXPECT_GT(wins_of_repeated(0.97, kNoise, kMaxTrialRounds), 0.75);
}

}  // namespace
}  // namespace autograph

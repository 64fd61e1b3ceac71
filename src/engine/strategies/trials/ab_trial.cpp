#include "engine/strategies/trials/ab_trial.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace autograph {
namespace {

// How far from one half the share of rounds won must be to count, in one round; in n rounds 1 / sqrt(n) of it. So
// a plan that gains 4 % wins 9 of 10 A/B trials where rounds differ by 6 %.
constexpr double kCertainty = 0.7;
// A loss needs less: nothing is gained by knowing it for sure.
constexpr double kCertaintyOfLoss = 0.35;
// The same of a trial and its repetition. Slow plans have five rounds for each, of which all must be won to be certain:
// a gain of 3 % would be taken one time in four where rounds differ by 6 %, with this three times in four.
constexpr double kCertaintyOfBoth = 0.35;
constexpr size_t kMinRounds = 3;
// What is open so far is so until these rounds.
constexpr size_t kRoundsToDecide = 5;
// An A/B trial is over after these rounds when one has been this much slower all the time.
constexpr size_t kClearRounds = 2;
constexpr double kClearly = 1.15;

double share_of_wins(const RoundTimes& times) {
  size_t wins = 0;
  for (size_t round = 0; round < times[0].size(); ++round) wins += times[1][round] < times[0][round] ? 1 : 0;
  return static_cast<double>(wins) / static_cast<double>(times[0].size());
}

}  // namespace

AbTrial AbTrial::from(const RoundTimes& times) {
  const std::vector<double> ms = medians(times);
  return {ms[0], ms[1], share_of_wins(times), times[0].size()};
}

bool AbTrial::is_won(double gain) const {
  return is_won(gain, std::min(1.0, 0.5 + kCertainty / std::sqrt(static_cast<double>(rounds))));
}

bool AbTrial::is_won(double gain, double most) const { return second_ms <= first_ms * (1 - gain) && wins >= most; }

bool AbTrial::is_decided(double gain) const {
  if (rounds < kRoundsToDecide) return false;
  return is_won(gain) || wins <= 0.5 - kCertaintyOfLoss / std::sqrt(static_cast<double>(rounds));
}

bool AbTrial::is_promising(double gain) const { return second_ms <= first_ms * (1 - gain) && wins > 0.5; }

AbTrial AbTrial::with_repetition(const AbTrial& again) const {
  const auto num_rounds = static_cast<double>(rounds);
  const auto num_again = static_cast<double>(again.rounds);
  return {std::sqrt(first_ms * again.first_ms), std::sqrt(second_ms * again.second_ms),
          (wins * num_rounds + again.wins * num_again) / (num_rounds + num_again), rounds + again.rounds};
}

bool AbTrial::is_won_twice(double gain) const {
  return is_won(gain, 0.5 + kCertaintyOfBoth / std::sqrt(static_cast<double>(rounds)));
}

bool is_one_sided(const RoundTimes& times) {
  const auto least = [](const std::vector<double>& ms) { return *std::min_element(ms.begin(), ms.end()); };
  const auto most = [](const std::vector<double>& ms) { return *std::max_element(ms.begin(), ms.end()); };
  const auto beats = [&](const std::vector<double>& a, const std::vector<double>& b) {
    return kClearly * most(a) < least(b);
  };
  if (times[0].size() >= kMinRounds && share_of_wins(times) == 0) return true;
  return times[0].size() >= kClearRounds && (beats(times[0], times[1]) || beats(times[1], times[0]));
}

}  // namespace autograph

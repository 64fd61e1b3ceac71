// Which of two plans is faster? A sequential sign test: rounds go on while the answer is open.
#pragma once

#include <cstddef>

#include "base/time_in_turns.h"

namespace autograph {

/// A smaller gain, as a part of the latency, is noise.
inline constexpr double kLeastGain = 0.005;
/// An A/B trial ends before this number of rounds if it is decided, and with it if not.
inline constexpr int kMaxTrialRounds = 25;

/// Latencies of two contestants, in milliseconds, measured in turns.
struct AbTrial {
  /// From the times of both in all rounds.
  static AbTrial from(const RoundTimes& times);

  /// Was the second one faster, by a part `gain` at least, and in so many rounds that luck is unlikely?
  bool is_won(double gain) const;
  /// The same where `most` of the rounds are enough.
  bool is_won(double gain, double most) const;
  /// Would another round tell no more: has the second one won, or is it clear that it does not, by a part `gain`?
  bool is_decided(double gain) const;
  /// Is the second one faster by a part `gain` as far as these rounds tell, be it by luck? Worth to be repeated.
  bool is_promising(double gain) const;
  /// This trial and its repetition by plans made anew, which counts as much: where memory lies is drawn once for all
  /// rounds of a trial.
  AbTrial with_repetition(const AbTrial& again) const;
  /// Of both together, where the first one was promising: was the second one faster, by a part `gain` at least? Two
  /// makings agree, so that less is asked of their rounds than of those of one trial alone.
  bool is_won_twice(double gain) const;

  double first_ms = 0;
  double second_ms = 0;
  double wins = 0;  ///< Share of the rounds in which the second one was faster.
  size_t rounds = 0;
};

/// Is there an end before that: has every round had the same winner, clearly, or has the second one never won?
bool is_one_sided(const RoundTimes& times);

}  // namespace autograph

// Timing things in turns, so that whatever else the machine does hits all alike.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace autograph {

/// Times by contestant and round, in milliseconds.
using RoundTimes = std::vector<std::vector<double>>;

/// How long to measure.
struct Turns {
  double seconds = 1;  ///< Of each contestant, in all rounds together; a run is never cut short.
  int min_rounds = 3;
  int max_rounds = 9;
  std::function<bool(const RoundTimes&)> is_enough = nullptr;  ///< Asked after every round; null: never.
};

/// Milliseconds of one run of each in each round: the least run of its turn, which is the last thing that the caches of
/// the others spoil. Everyone runs once before the first round.
RoundTimes time_in_turns(std::span<const std::function<void()>> runs, const Turns& turns);

/// The same for runs that tell by themselves how many milliseconds they took. Turns and rounds are long by the clock of
/// the host.
RoundTimes time_in_turns(std::span<const std::function<double()>> runs, const Turns& turns);

/// Milliseconds of each contestant in a round of median speed: the median over rounds of its time relative to its
/// round, so that a machine whose speed drifts from round to round does not decide. All have as many rounds.
std::vector<double> medians(const RoundTimes& times);

}  // namespace autograph

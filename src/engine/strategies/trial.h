// Verification on the device: are the numbers right, and which of two is faster? Timed in turns, so that whatever else
// the machine does hits both alike.
#pragma once

#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "engine/node_times.h"
#include "engine/strategies/strategy.h"

namespace autograph {

/// Latencies of two contestants, in milliseconds, measured in turns.
struct Duel {
  double first_ms = 0;
  double second_ms = 0;
  double wins = 0;  ///< Share of the rounds in which the second one was faster.

  /// Was the second one faster, by a part `gain` at least, and in `most` of the rounds?
  bool is_won(double gain, double most = kMostRounds) const {
    return second_ms <= first_ms * (1 - gain) && wins >= most;
  }

  /// Of 7 rounds, 5.
  static constexpr double kMostRounds = 0.7;
};

/// See above.
class Trial {
 public:
  /// Compiles `simplified` without any pass that is not required for the numbers to compare with; at lower precision,
  /// where these would differ by rounding, as the plain plan.
  Trial(StrategyContext& context, const Graph& simplified);

  /// A compiled proposal.
  Executable compile(const Proposal& proposal) const;
  /// Runs once and compares with the numbers of the graph at the start.
  Difference check(const Executable& executable) const;
  /// When nodes of the proposal ran, by node, in each of up to `runs` profiled runs behind a first one that does
  /// not count; fewer of slow graphs.
  std::vector<std::vector<NodeSpan>> profile(const Proposal& proposal, int runs) const;
  /// Times both in turns, for at most `seconds` but at least three rounds, or until it is clear.
  Duel duel(const Executable& first, const Executable& second, double seconds) const;

 private:
  CompileOptions options_for(const Proposal& proposal) const;

  StrategyContext& context_;
  Tolerance tolerance_;
  std::vector<Datum> inputs_;
  std::vector<Datum> expected_;
};

}  // namespace autograph

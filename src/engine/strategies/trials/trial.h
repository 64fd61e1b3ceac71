// Verification on the device: are the numbers right, and which of two is faster? Timed in turns, so that whatever else
// the machine does hits both alike.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "engine/node_times.h"
#include "engine/strategies/strategy.h"
#include "engine/strategies/trials/ab_trial.h"

namespace autograph {

class Trial {
 public:
  explicit Trial(StrategyContext& context);
  /// On other inputs than those of the search: for parts of the graph.
  Trial(StrategyContext& context, std::vector<Datum> inputs);

  /// A compiled proposal. Its kernels are attested, those that compile_plain() left out excepted, as long as there is
  /// time.
  Executable compile(const Proposal& proposal) const;
  /// The same for the plain plan, which is the result where nothing else is: the budget is not all spent on attesting
  /// its kernels.
  Executable compile_plain(const Proposal& proposal) const;
  /// A compiled graph behind all passes.
  Executable compile(const Graph& finished, const Schedule& schedule) const;
  /// Of the last compilation: what running kernels to measure or to attest them took, which no later one of the same
  /// graph takes.
  double seconds_tried() const;
  /// Was there no time to attest a kernel that the plain plan has not? What was compiled last must not be trusted then.
  bool has_unattested() const;
  /// What there was no time to attest of the plain plan, behind what it was compared with; "" for nothing.
  std::string describe_unattested() const;
  /// Runs once and compares with the truth, where that was asked for.
  Difference check(const Executable& executable) const;
  /// When nodes of the proposal ran, by node, in each of up to `runs` profiled runs behind a first one that does
  /// not count; fewer of slow graphs.
  std::vector<std::vector<NodeSpan>> profile(const Proposal& proposal, int runs) const;
  /// Times both in turns until it is clear who is faster (see AbTrial), for about `seconds` at most.
  AbTrial ab_trial(const Executable& first, const Executable& second, double seconds) const;

 private:
  CompileOptions options_for(const Schedule& schedule, bool is_plain = false) const;
  Executable compile(const Graph& finished, const CompileOptions& options) const;
  bool may_try(KernelTrial trial, std::string_view kernel, bool is_plain) const;
  bool may_attest(std::string_view kernel, bool is_plain) const;
  bool has_time_for_plain() const;

  const std::vector<Datum>& inputs() const { return inputs_; }

  StrategyContext& context_;
  std::vector<Datum> inputs_;  // where the device reads them: copies do not count
  mutable std::mutex mutex_;   // guards what follows: kernels are chosen while running, too
  mutable std::set<std::string, std::less<>> unattested_of_plain_;
  mutable size_t num_unattested_ = 0;         // of all others
  mutable std::optional<double> late_since_;  // when a kernel of the plain plan came late for the first time
  mutable double seconds_tried_ = 0;
  mutable std::optional<double> tried_since_;  // when the kernel that is tried began
};

}  // namespace autograph

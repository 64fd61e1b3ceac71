// The best plan so far, and how another takes its place: compiled, compared with the truth, and timed in turns with it.
// Every strategy that measures whole plans does it here, so that all get the same trials, tuning and repeats.
#pragma once

#include <map>
#include <set>

#include "engine/strategies/strategy.h"
#include "engine/strategies/trials/trial.h"

namespace autograph {

/// A graph that took this many times the best was no near thing: variants of it are not run.
inline constexpr double kClearLoss = 1.05;

/// For one thread, as StrategyContext.
class Incumbent {
 public:
  /// Compiles and runs `plain`, the first incumbent, and costs it then: measuring first what its kernels take would
  /// leave less time to attest them.
  Incumbent(StrategyContext& context, Proposal plain);

  const Proposal& best() const { return best_; }
  /// Latency of the best over that of the first one.
  double gained() const { return gained_; }
  /// What a win must gain, as a part of the latency: where latencies are computed there is no noise.
  double least_gain() const { return has_exact_times_ ? 0 : kLeastGain; }
  /// Until the last trial must begin, which leaves time for the last measurement.
  double seconds_left() const;
  bool has_time() const;
  /// Is there time for more trials than a few?
  bool has_many_trials() const;
  /// What the best takes in its schedule, by the costs of its kernels.
  double best_predicted_us();
  /// Is there time to make both plans of a trial anew and to run them once more?
  bool has_time_to_repeat() const;
  /// Is there time to find the stages of a schedule that pay, and to try what is left?
  bool has_time_to_choose_stages() const;
  /// Where latencies are computed, they are what the costs of kernels say: does that take clearly longer than the best?
  bool is_hopeless(double predicted_us);
  /// Has no proposal had this graph? Remembers it.
  bool is_new_graph(const Proposal& proposal);

  /// Takes the proposal when it gives the same numbers in less time.
  bool try_candidate(Proposal proposal);
  /// The proposal with a schedule of several streams: as it is, and with those stages alone that pay on the device. Not
  /// one that is hopeless().
  void try_schedule(Proposal proposal, Schedule schedule);
  /// Kernels and layouts chosen by measurement instead of by estimate, when that is faster: in the network, too, where
  /// there is time, so that no search ends behind tuning alone.
  void try_tuning();
  /// The same for what they take in the network. This takes as long as many trials: for the best plan alone, at the
  /// end.
  void try_tuning_in_network();

  /// The best, when nothing more comes. What graphs took is remembered for later fits of alpha.
  Proposal take();

 private:
  bool try_predicted(Proposal proposal, double predicted_us);
  double candidate_seconds() const;
  bool may_tune() const;
  bool wins_tuned(bool was_tuned);
  Executable untuned_anew();
  size_t num_fresh_steps(const Proposal& proposal) const;
  double trial_seconds() const;
  bool wins(AbTrial& ab_trial, const Proposal& proposal, Executable& executable);
  void remember(const Proposal& proposal, double ms);

  StrategyContext& context_;
  const SearchOptions& options_;
  const bool has_exact_times_;
  const bool can_time_kernels_;
  const bool is_shared_;  // streams share the device
  const Trial& trial_;
  Proposal best_;
  Executable best_executable_;
  double best_predicted_us_ = 0;  // 0: not asked yet
  double compile_seconds_ = 0;    // of the last candidate
  double tried_seconds_ = 0;      // to measure and attest the kernels of the first one
  double exact_seconds_ = 0;      // of the last trial as a whole, where latencies are computed
  double run_seconds_ = 0;        // of the first plan, with the comparison of numbers
  double gained_ = 1;
  Difference best_difference_;
  double best_ms_ = 0;        // in the trial that it won
  double tuning_gained_ = 1;  // by choosing kernels of the best, beside gained_
  std::map<Hash128, LatencySample> samples_;
  std::set<Hash128> seen_;
};

/// Tries the schedules of `list` for the graph of `of`.
void try_list(StrategyContext& context, Incumbent& incumbent, const Proposal& of);
/// Tries the schedules of `nimble` for the graph of `of`, and with that of `list`.
void try_nimble(StrategyContext& context, Incumbent& incumbent, const Proposal& of);
/// Tries the graphs that `taso` finds, and gives them back, cheapest first.
std::vector<Proposal> try_taso(StrategyContext& context, Incumbent& incumbent, const Graph& simplified);

}  // namespace autograph

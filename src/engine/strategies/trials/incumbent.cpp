#include "engine/strategies/trials/incumbent.h"

#include <algorithm>

#include "engine/strategies/trials/tune_stages.h"

namespace autograph {
namespace {

// Of the budget: when trials on the device end. The last part is for measuring the result against the plain plan.
constexpr double kTrialShare = 0.8;
constexpr double kExactTrialShare = 0.92;
// Until when the kernels of the plain graph are measured, and those of rewritten ones.
constexpr double kFirstTuningShare = 0.3;
constexpr double kTuningShare = 0.75;
// Kernels of the plain graph are chosen in the network, as tuning without a search does, where so many of its runs and
// plans take no longer than this part of the budget.
constexpr double kFewestNetworkRuns = 22;
constexpr double kFewestNetworkPlans = 3;
constexpr double kFirstNetworkShare = 0.25;
// What is left when trials end must do for the last trial, which may be repeated, and the last measurement.
constexpr double kTrialsToCome = 3.2;
// Where that is more than this part of the budget, plans take so long to make that what trials told must do: time is
// left for the last of them alone.
constexpr double kLastMeasurementShare = 0.2;
constexpr double kLastTrialToCome = 1.1;
// The same when plans of the best graph are run to choose its kernels: the last of them takes as long as three trials.
constexpr double kNetworkTrialsToCome = kTrialsToCome + 3;
// Plans that are made, and run as often as those of a trial, before stages of a schedule that pay are chosen.
constexpr double kPlansToChooseStages = 2;
// Runs in an A/B trial of graphs that are slow, with the warm-up.
constexpr double kTrialRuns = 8;
// Of the kernels that the plain plan has, so many does a rewritten graph have anew, to be attested.
constexpr double kFreshKernels = 0.25;
// Equal plans differed by up to 14 % on a shared virtual machine, for as long as they lived.
constexpr double kClearGain = 0.2;
// An A/B trial may take this part of the budget at least, and that part if time is left and nobody has won; no more
// seconds than these.
constexpr double kShortTrialShare = 0.02;
constexpr double kLongTrialShare = 0.1;
constexpr double kMaxTrialSeconds = 6;

}  // namespace

Incumbent::Incumbent(StrategyContext& context, Proposal plain)
    : context_(context),
      options_(context.options()),
      has_exact_times_(context.properties().has_exact_times),
      can_time_kernels_(context.properties().can_time_kernels),
      is_shared_(context.has_loads(plain.finished)),
      trial_(context.trial()),
      best_(std::move(plain)) {
  const double start = context_.seconds();
  best_executable_ = trial_.compile_plain(best_);
  const double compiled = context_.seconds();
  Difference difference = trial_.check(best_executable_);
  tried_seconds_ = trial_.seconds_tried();
  compile_seconds_ = compiled - start - tried_seconds_;
  run_seconds_ = context_.seconds() - compiled;
  context_.set_plain_run({std::move(difference), best_executable_.simulated_latency_ms().value_or(run_seconds_ * 1e3)});
  context_.reserve(options_.runs_to_come * (compile_seconds_ + run_seconds_));
  context_.cost_plain(best_.simplified);
  best_.cost_us = context_.report().cost_before_us;
  is_new_graph(best_);
}

// Of a trial with a clear winner. Where latencies are computed, a plan runs once, for its numbers.
double Incumbent::candidate_seconds() const {
  if (has_exact_times_) return std::max(compile_seconds_ + run_seconds_, exact_seconds_);
  return compile_seconds_ + kFreshKernels * tried_seconds_ + kTrialRuns * run_seconds_;
}

bool Incumbent::has_many_trials() const {
  return kTrialsToCome * candidate_seconds() <= kLastMeasurementShare * context_.budget_seconds();
}

double Incumbent::seconds_left() const {
  const double budget = context_.budget_seconds();
  if (context_.counts_candidates()) return (kExactTrialShare - context_.share_spent()) * budget;
  const double last_trial = budget - kLastTrialToCome * candidate_seconds();
  if (has_exact_times_) return std::min(kExactTrialShare * budget, last_trial) - context_.seconds();
  const double until =
      has_many_trials() ? std::min(kTrialShare * budget, budget - kTrialsToCome * candidate_seconds()) : last_trial;
  return until - context_.seconds();
}

bool Incumbent::has_time() const {
  if (!context_.is_cancelled() && seconds_left() > 0) return true;
  context_.cut_short();
  return false;
}

bool Incumbent::has_time_to_repeat() const {
  const double left = context_.budget_seconds() - context_.seconds();
  return context_.counts_candidates() || left > 2 * compile_seconds_ + kTrialRuns * run_seconds_;
}

// Both are profiled, in runs as those of a trial, and what is left is one.
bool Incumbent::has_time_to_choose_stages() const {
  return context_.counts_candidates() || seconds_left() > kPlansToChooseStages * candidate_seconds();
}

bool Incumbent::is_new_graph(const Proposal& proposal) {
  return seen_.insert(structural_hash(proposal.finished)).second;
}

double Incumbent::best_predicted_us() {
  if (best_predicted_us_ == 0) best_predicted_us_ = context_.predicted_us(best_).value_or(0);
  return best_predicted_us_;
}

bool Incumbent::is_hopeless(double predicted_us) {
  return has_exact_times_ && is_shared_ && predicted_us > kClearLoss * best_predicted_us();
}

bool Incumbent::try_candidate(Proposal proposal) { return try_predicted(std::move(proposal), 0); }

bool Incumbent::try_predicted(Proposal proposal, double predicted_us) {
  context_.progress("verifying", best_.cost_us);
  ++context_.report().measured;
  const double start = context_.seconds();
  Executable executable = trial_.compile(proposal);
  compile_seconds_ = context_.seconds() - start;
  tried_seconds_ = 0;  // now with what a candidate's own kernels take
  Difference difference = options_.verify ? trial_.check(executable) : Difference();
  if (!difference.ok || trial_.has_unattested()) {
    TrialResult wrong{proposal.cost_us, proposal.steps.size(), proposal.schedule.width()};
    wrong.is_right = false;
    context_.report().trials.push_back(wrong);
    context_.note_trial(proposal.steps, {RewriteFate::not_verified});
    return false;
  }
  AbTrial ab_trial = trial_.ab_trial(best_executable_, executable, trial_seconds());
  remember(best_, ab_trial.first_ms);
  remember(proposal, ab_trial.second_ms);
  if (predicted_us == 0) predicted_us = context_.predicted_us(proposal).value_or(0);
  if (has_exact_times_) exact_seconds_ = context_.seconds() - start;
  const bool is_won =
      context_.is_literal() ? ab_trial.second_ms <= ab_trial.first_ms : wins(ab_trial, proposal, executable);
  context_.report().trials.push_back({proposal.cost_us, proposal.steps.size(), proposal.schedule.width(),
                                      ab_trial.second_ms, ab_trial.first_ms, ab_trial.wins, is_won, predicted_us});
  context_.note_trial(proposal.steps, {is_won ? RewriteFate::kept : RewriteFate::lost_trial,
                                       (ab_trial.first_ms - ab_trial.second_ms) * 1e3, num_fresh_steps(proposal)});
  if (!is_won) return false;
  gained_ *= ab_trial.second_ms / ab_trial.first_ms;
  best_ms_ = ab_trial.second_ms;
  best_difference_ = std::move(difference);
  best_ = std::move(proposal);
  best_predicted_us_ = predicted_us;
  best_executable_ = std::move(executable);
  return true;
}

void Incumbent::try_schedule(Proposal proposal, Schedule schedule) {
  if (schedule.width() < 2 || !has_time()) return;
  proposal.schedule = std::move(schedule);
  const std::optional<double> prediction = context_.predicted_us(proposal);
  if (!prediction || is_hopeless(*prediction)) return;
  const double predicted_us = *prediction;
  if (!can_time_kernels_) {
    try_predicted(std::move(proposal), predicted_us);
    return;
  }
  try_predicted(proposal, predicted_us);
  if (!has_time() || !has_time_to_choose_stages()) return;
  proposal.schedule = keep_paying_stages(trial_, proposal);
  if (proposal.schedule.width() > 1) try_candidate(std::move(proposal));
}

// Where kernels can be timed, may be tried, and are not measured already.
bool Incumbent::may_tune() const {
  return can_time_kernels_ && options_.use_tuning && !context_.compile_options().tune;
}

void Incumbent::try_tuning() {
  if (!may_tune() || !has_time()) return;
  context_.progress("choosing kernels", best_.cost_us);
  const double network_seconds = kFewestNetworkRuns * run_seconds_ + kFewestNetworkPlans * compile_seconds_;
  context_.set_tuned(true, kFirstTuningShare, network_seconds <= kFirstNetworkShare * context_.budget_seconds());
  context_.set_tuned(wins_tuned(false), kTuningShare);
}

void Incumbent::try_tuning_in_network() {
  const double until = 1 - kNetworkTrialsToCome * candidate_seconds() / context_.budget_seconds();
  if (!may_tune() || context_.is_over(until)) return;
  context_.progress("running plans to choose kernels", best_.cost_us);
  const bool was_tuned = context_.is_tuned();
  context_.set_tuned(true, until, true);
  if (!wins_tuned(was_tuned)) context_.set_tuned(was_tuned, kTuningShare);
}

// Does the best graph, compiled with kernels chosen as trials have them now, beat its executable and give the same
// numbers? Then that is it.
bool Incumbent::wins_tuned(bool was_tuned) {
  Executable executable = trial_.compile(best_);
  AbTrial ab_trial = trial_.ab_trial(best_executable_, executable, trial_seconds());
  if (!ab_trial.is_won(least_gain())) {
    if (!ab_trial.is_promising(kLeastGain) || !has_time_to_repeat()) return false;
    const Executable anew = was_tuned ? Executable() : untuned_anew();
    executable = trial_.compile(best_);
    const AbTrial again = trial_.ab_trial(was_tuned ? best_executable_ : anew, executable, trial_seconds());
    ab_trial = ab_trial.with_repetition(again);
    if (!ab_trial.is_won_twice(kLeastGain)) return false;
  }
  Difference difference = trial_.check(executable);
  if (!difference.ok || trial_.has_unattested()) return false;
  tuning_gained_ *= ab_trial.second_ms / ab_trial.first_ms;
  best_ms_ = ab_trial.second_ms;
  best_difference_ = std::move(difference);
  best_executable_ = std::move(executable);
  return true;
}

// The best graph with kernels by estimate, made anew for a repetition. One that was tuned before it was tuned in the
// network cannot be made again: it would get the kernels that the network has now.
Executable Incumbent::untuned_anew() {
  const bool is_in_network = context_.is_tuned_in_network();
  context_.set_tuned(false, 0);
  Executable executable = trial_.compile(best_);
  context_.set_tuned(true, 0, is_in_network);  // kernels are known by now: nothing is measured again
  return executable;
}

// Rewrites that the proposal has beyond those that it shares with the best: both may come from one graph.
size_t Incumbent::num_fresh_steps(const Proposal& proposal) const {
  const auto same = [](const RewriteStep& a, const RewriteStep& b) { return a.rule == b.rule && a.where == b.where; };
  const auto& known = best_.steps;
  const auto differ = std::mismatch(proposal.steps.begin(), proposal.steps.end(), known.begin(), known.end(), same);
  return static_cast<size_t>(proposal.steps.end() - differ.first);
}

// A win is repeated, so that an A/B trial may use half of the time that is left.
double Incumbent::trial_seconds() const {
  const double budget = context_.budget_seconds();
  const double seconds = std::clamp(seconds_left() / 2, kShortTrialShare * budget, kLongTrialShare * budget);
  return std::min(seconds, kMaxTrialSeconds);
}

// A gain that is no larger than what equal plans differ by, when their memory happens to lie elsewhere, is measured
// once more by plans made anew, and both trials decide together; `executable` then is the new one. Where no time is
// left for that it is none.
bool Incumbent::wins(AbTrial& ab_trial, const Proposal& proposal, Executable& executable) {
  if (has_exact_times_ || ab_trial.is_won(kClearGain)) return ab_trial.is_won(least_gain());
  if (!ab_trial.is_promising(kLeastGain) || !has_time_to_repeat()) return false;
  const Executable best = trial_.compile(best_);
  executable = trial_.compile(proposal);
  ab_trial = ab_trial.with_repetition(trial_.ab_trial(best, executable, trial_seconds()));
  return ab_trial.is_won_twice(kLeastGain);
}

// What a graph took in its best schedule. Alpha is not fitted to latencies that are computed.
void Incumbent::remember(const Proposal& proposal, double ms) {
  if (has_exact_times_) return;
  const auto [at, is_new] = samples_.try_emplace(structural_hash(proposal.finished));
  if (is_new) {
    const GraphScore score = context_.score(proposal.simplified);
    at->second = {score.sum_us, score.critical_us, ms * 1e3};
  }
  at->second.latency_us = std::min(at->second.latency_us, ms * 1e3);
}

Proposal Incumbent::take() {
  for (const auto& [hash, sample] : samples_) context_.remember_latency(hash, sample);
  if (best_ms_ > 0) {
    context_.set_best_run({std::move(best_difference_), best_ms_, gained_ * tuning_gained_, candidate_seconds()});
  } else if (!samples_.empty()) {  // hashing a large graph takes some time
    const auto sample = samples_.find(structural_hash(best_.finished));
    if (sample != samples_.end()) {
      context_.set_plain_run({context_.plain_run()->difference, sample->second.latency_us / 1e3, true});
    }
  }
  return std::move(best_);
}

}  // namespace autograph

#include "engine/strategies/trials/trial.h"

#include <fmt/core.h>

#include "base/stopwatch.h"
#include "base/time_in_turns.h"
#include "engine/strategies/trials/timed_run.h"

namespace autograph {
namespace {

constexpr size_t kMinRounds = 3;
constexpr int kUsualRounds = 5;
// Runs of a profile take no longer than this together, but for the first few.
constexpr double kProfileSeconds = 1;
constexpr int kMinProfileRuns = 3;
// Of the budget: until when kernels of the plain plan are measured where tuning is asked for: behind that they are
// attested.
constexpr double kPlainTuningShare = 0.5;
// The same: until when they are attested. A call takes the reference up to a millisecond, a hundred thousand of them
// minutes.
constexpr double kPlainAttestShare = 0.75;
// The same for how long they are in any case: networks that repeat their blocks have few.
constexpr double kLeastAttestShare = 0.02;

}  // namespace

Trial::Trial(StrategyContext& context) : Trial(context, context.options().inputs) {}

Trial::Trial(StrategyContext& context, std::vector<Datum> inputs) : context_(context), inputs_(std::move(inputs)) {
  for (Datum& input : inputs_) {
    if (input.is_tensor()) input = input.tensor().to(context.device().memory());
  }
}

CompileOptions Trial::options_for(const Schedule& schedule, bool is_plain) const {
  CompileOptions options = context_.compile_options();
  options.expert.schedule = std::make_shared<Schedule>(schedule);
  options.release_weights = false;
  options.keep_on_device = true;
  options.tune = options.tune || context_.is_tuned();
  options.expert.tune_in_network = context_.is_tuned_in_network();
  options.expert.may_try = [this, is_plain](KernelTrial trial, std::string_view kernel) {
    return may_try(trial, kernel, is_plain);
  };
  return options;
}

// Kernels are tried one after the other: one ends where the next is asked about. That of the last one is not known.
bool Trial::may_try(KernelTrial trial, std::string_view kernel, bool is_plain) const {
  const std::lock_guard lock(mutex_);
  const double now = context_.seconds();
  if (tried_since_) seconds_tried_ += now - *tried_since_;
  tried_since_.reset();
  const bool may_tune = context_.may_tune() && !(is_plain && context_.has_spent(kPlainTuningShare));
  const bool may = trial == KernelTrial::attest ? may_attest(kernel, is_plain) : may_tune;
  if (may) tried_since_ = now;
  return may;
}

double Trial::seconds_tried() const {
  const std::lock_guard lock(mutex_);
  return seconds_tried_;
}

// By the clock alone: a search that counts candidates gives the same plan however long it takes.
bool Trial::may_attest(std::string_view kernel, bool is_plain) const {
  if (unattested_of_plain_.contains(kernel)) return false;
  if (is_plain ? has_time_for_plain() : !context_.is_out_of_time()) return true;
  if (is_plain) {
    unattested_of_plain_.emplace(kernel);
  } else {
    ++num_unattested_;
  }
  return false;
}

bool Trial::has_time_for_plain() const {
  if (context_.is_cancelled()) return false;
  const double seconds = context_.seconds();
  const double budget = context_.budget_seconds();
  if (context_.counts_candidates() || seconds < kPlainAttestShare * budget) return true;
  if (!late_since_) late_since_ = seconds;
  return seconds - *late_since_ < kLeastAttestShare * budget;
}

bool Trial::has_unattested() const {
  const std::lock_guard lock(mutex_);
  return num_unattested_ > 0;
}

std::string Trial::describe_unattested() const {
  const std::lock_guard lock(mutex_);
  if (unattested_of_plain_.empty()) return "";
  return fmt::format("; no time to attest {} kernel{} of the plain plan", unattested_of_plain_.size(),
                     unattested_of_plain_.size() == 1 ? "" : "s");
}

Executable Trial::compile(const Proposal& proposal) const { return compile(proposal.finished, proposal.schedule); }

Executable Trial::compile_plain(const Proposal& proposal) const {
  return compile(proposal.finished, options_for(proposal.schedule, /*is_plain=*/true));
}

Executable Trial::compile(const Graph& finished, const Schedule& schedule) const {
  return compile(finished, options_for(schedule));
}

Executable Trial::compile(const Graph& finished, const CompileOptions& options) const {
  {
    const std::lock_guard lock(mutex_);
    seconds_tried_ = 0;
    tried_since_.reset();
  }
  return autograph::compile(finished, options);
}

Difference Trial::check(const Executable& executable) const {
  Outputs outputs = executable.run(inputs());
  for (Datum& output : outputs) {
    if (output.is_tensor()) output = output.tensor().to_host();
  }
  const auto& truth = context_.options().truth;
  return truth ? truth->compare_all(outputs) : Difference();
}

std::vector<std::vector<NodeSpan>> Trial::profile(const Proposal& proposal, int runs) const {
  CompileOptions options = options_for(proposal.schedule);
  options.profile = true;
  const Executable executable = autograph::compile(proposal.finished, options);
  std::vector<std::vector<NodeSpan>> result;
  executable.run(inputs());
  const Stopwatch watch;
  for (int run = 0; run < runs; ++run) {
    if (run >= kMinProfileRuns && watch.ms() > kProfileSeconds * 1e3) break;
    executable.run(inputs());
    result.push_back(node_spans(proposal.finished, executable.profile()));
  }
  return result;
}

AbTrial Trial::ab_trial(const Executable& first, const Executable& second, double seconds) const {
  if (const auto first_ms = first.simulated_latency_ms()) {
    const double second_ms = *second.simulated_latency_ms();
    return {*first_ms, second_ms, second_ms < *first_ms ? 1.0 : 0.0, 1};
  }
  const auto run_of = [this](const Executable& executable) {
    return [this, &executable] { return timed_run_ms(context_.device(), executable, inputs()); };
  };
  const std::function<double()> runs[] = {run_of(first), run_of(second)};
  Turns turns;
  turns.seconds = seconds / 2;
  turns.min_rounds = kUsualRounds;
  turns.max_rounds = kMaxTrialRounds;
  turns.is_enough = [&](const RoundTimes& times) {
    const bool is_cut = context_.is_out_of_time() && times[0].size() >= kMinRounds;
    return is_cut || is_one_sided(times) || AbTrial::from(times).is_decided(kLeastGain);
  };
  return AbTrial::from(time_in_turns(runs, turns));
}

}  // namespace autograph

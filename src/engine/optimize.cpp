// optimize(): from a graph to the graph and the schedule that a strategy found for it, verified on the device.
#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "autograph/search.h"
#include "autograph/seeded_inputs.h"
#include "autograph/verify.h"
#include "base/check.h"
#include "base/stopwatch.h"
#include "engine/executable.h"
#include "engine/strategies/strategy.h"
#include "engine/strategies/trials/trial.h"

namespace autograph {
namespace {

// What is left of the budget for the last measurement takes no longer than this.
constexpr double kMaxTrialSeconds = 4;
constexpr double kMinTrialSeconds = 0.2;
// Plans whose latencies differ by a smaller part are measured again, when so many times of the first measurement are
// left.
constexpr double kClose = 0.1;
constexpr double kTimeForAnother = 1.5;

// Both are compiled and run for that.
constexpr double kPlansToSettle = 2.2;
// On a busy machine, or in ops of a program's own, the reference may take longer than it should: so many times.
constexpr double kTruthOverdue = 1.5;
// The plain plan alone: the fewest rounds, and compiling it.
constexpr double kRunsToSettle = 16;

void check_options(const SearchOptions& search) {
  const auto require = [](bool condition, std::string_view what, std::string_view expected, double got) {
    AG_CHECK_USER(condition, ValueError, "[search] {}: expected {}, got {}", what, expected, got);
  };
  require(search.alpha.value_or(0) >= 0, "alpha", "0 or more", search.alpha.value_or(0));
  require(search.gamma >= 1, "gamma", "1 or more", search.gamma);
  require(search.budget_seconds > 0, "budget", "more than 0 seconds", search.budget_seconds);
  require(search.keep >= 1, "keep", "1 or more", search.keep);
  require(search.rounds >= 1, "rounds", "1 or more", search.rounds);
  require(search.max_streams >= 0, "streams", "0 or more", search.max_streams);
  require(search.candidates >= 0, "candidates", "0 or more", search.candidates);
}

void check_static(const Graph& graph) {
  for (const ValueId v : graph.inputs()) {
    const Type& type = graph.type(v);
    AG_CHECK_USER(!type.is_tensor() || type.is_static(), ShapeError,
                  "[search] input '{}': expected numbers for all extents, got {} (bind_inputs() gives them numbers)",
                  graph.value(v).name(), to_string(type));
  }
}

AppliedRule applied(const RewriteStep& step) { return {std::string(step.rule->name), step.where, step.gain_us}; }

// A proposal beside the plain plan, both compiled.
struct Pair {
  Executable found;
  Executable plain;
};

Pair compile_both(StrategyContext& context, const Trial& trial, const Proposal& found, const Proposal& plain) {
  const bool is_tuned = context.is_tuned();
  const bool is_tuned_in_network = context.is_tuned_in_network();
  Pair pair;
  pair.found = trial.compile(found);
  context.set_tuned(false, 0);  // the plain plan is what users have without a search
  pair.plain = trial.compile_plain(plain);
  context.set_tuned(is_tuned, 0, is_tuned_in_network);
  return pair;
}

// Measures both in turns, and where they are close and time allows once more with both made anew: equal plans differ by
// where their memory happens to lie. Latencies are means.
AbTrial last_ab_trial(StrategyContext& context, const Trial& trial, Pair& pair, const Proposal& found,
                      const Proposal& plain) {
  const double start = context.seconds();
  const auto seconds_left = [&] { return context.budget_seconds() - context.seconds(); };
  const auto ab_trial = [&] {
    return trial.ab_trial(pair.plain, pair.found, std::clamp(seconds_left() / 3, kMinTrialSeconds, kMaxTrialSeconds));
  };
  AbTrial result = ab_trial();
  const bool is_close = std::abs(result.second_ms / result.first_ms - 1) < kClose;
  const double took = context.seconds() - start;
  if (!is_close || context.properties().has_exact_times || seconds_left() < kTimeForAnother * took) return result;
  pair = Pair();
  pair = compile_both(context, trial, found, plain);
  const AbTrial again = ab_trial();
  return {(result.first_ms + again.first_ms) / 2, (result.second_ms + again.second_ms) / 2,
          (result.wins + again.wins) / 2, result.rounds + again.rounds};
}

void tell(SearchReport& report, const Difference& difference) {
  report.max_abs = difference.max_abs;
  report.max_rel = difference.max_rel;
  report.agrees = difference.ok;
}

// Where the plain plan is all that was found, there is nothing to measure it against: what trials that others lost told
// of it will do, and where the budget is as good as over, its first run.
void settle_for_plain(StrategyContext& context, const Trial& trial, const Proposal& plain) {
  SearchReport& report = context.report();
  const auto& known = context.plain_run();
  const auto has_time = [&] {
    return !context.has_spent(1) && context.seconds() + kRunsToSettle * known->ms / 1e3 < context.budget_seconds();
  };
  if (known && (known->is_timed || report.simulated || !has_time())) {
    report.latency_before_ms = report.latency_after_ms = known->ms;
    tell(report, known->difference);
    return;
  }
  const Executable executable = trial.compile_plain(plain);
  tell(report, trial.check(executable));
  const AbTrial ab_trial = trial.ab_trial(executable, executable, kMinTrialSeconds);
  report.latency_before_ms = report.latency_after_ms = ab_trial.first_ms;
}

// Measures the proposal against the plain plan, in turns, and gives back the better one.
Proposal settle(StrategyContext& context, const Trial& trial, Proposal found, Proposal plain) {
  SearchReport& report = context.report();
  Pair pair = compile_both(context, trial, found, plain);
  const Difference difference = trial.check(pair.found);
  const AbTrial ab_trial = last_ab_trial(context, trial, pair, found, plain);
  report.latency_before_ms = ab_trial.first_ms;
  report.latency_after_ms = ab_trial.second_ms;
  const bool is_wrong = context.options().verify && (!difference.ok || trial.has_unattested());
  const bool is_slower = context.options().never_slower && ab_trial.second_ms > ab_trial.first_ms;
  if (is_wrong || is_slower) {
    report.kept_plain = true;
    report.latency_after_ms = ab_trial.first_ms;
    context.set_tuned(false, 0);
    tell(report, trial.check(pair.plain));
    context.note_trial(found.steps, {is_wrong ? RewriteFate::not_verified : RewriteFate::lost_trial,
                                     (ab_trial.first_ms - ab_trial.second_ms) * 1e3, found.steps.size()});
    return plain;
  }
  tell(report, difference);
  return found;
}

// Is there time to make both plans anew and to run them in turns? Who presses Ctrl-C waits for no measurement.
bool has_time_to_settle(StrategyContext& context) {
  const auto& run = context.best_run();
  if (!run) return true;
  if (context.is_cancelled()) return false;
  const double seconds_left = context.budget_seconds() - context.seconds();
  return context.counts_candidates() || seconds_left > kPlansToSettle * run->trial_seconds;
}

// What the trials told: every plan that became the best was compared, and was faster than the one before it.
void settle_by_trials(StrategyContext& context) {
  SearchReport& report = context.report();
  const StrategyContext::BestRun& run = *context.best_run();
  report.latency_after_ms = run.ms;
  report.latency_before_ms = run.ms / run.gained;
  tell(report, run.difference);
}

// With what trials run: states are as they are before the first run.
SearchOptions with_inputs(const Graph& graph, SearchOptions search, const HiddenStates& hidden) {
  if (search.inputs.empty()) {
    SeedOptions seeds;
    seeds.seed = search.seed;
    search.inputs = seeded_inputs(graph, seeds);
    search.inputs.resize(search.inputs.size() - hidden.initial.size());
  }
  if (!hidden.initial.empty()) search.truth = nullptr;  // that of another function
  search.inputs.insert(search.inputs.end(), hidden.initial.begin(), hidden.initial.end());
  return search;
}

// With what trials are compared, and with kernels that are trusted only when they are right.
SearchOptions with_truth(const Graph& graph, const CompileOptions& compile_options, SearchOptions search) {
  if (!search.verify || search.truth) return search;
  if (search.on_progress) search.on_progress({"running the reference", 0, 0, 0, 0, search.budget_seconds});
  TruthLimits limits = truth_limits(search);
  limits.is_cancelled = search.is_cancelled;
  search.truth = std::make_shared<const Truth>(Truth::of(graph, search.inputs, compile_options, limits));
  return search;
}

CompileOptions attested(CompileOptions options) {
  options.attest = true;
  return options;
}

}  // namespace

TruthLimits truth_limits(const SearchOptions& search) {
  const double seconds = kTruthShare * search.budget_seconds;
  return {.seconds = seconds, .overdue_seconds = search.candidates > 0 ? 0 : kTruthOverdue * seconds};
}

Optimized optimize(Graph graph, const CompileOptions& given_options, const SearchOptions& given) {
  const Stopwatch since_start;
  check_options(given);
  const StrategyDef& strategy = get_strategy(given.strategy);
  verify(graph);
  check_static(graph);
  // What searches sees a function: of the states, too, and giving their new values, which trials then compare.
  const HiddenStates hidden = graph.states_to_inputs();
  const CompileOptions compile_options = attested(given_options);
  SearchOptions search = with_truth(graph, compile_options, with_inputs(graph, given, hidden));
  search.spent_seconds += since_start.ms() / 1e3;
  SearchReport report;
  if (search.truth) report.compared_with = search.truth->how();
  const Device& device = get_device(compile_options.device, compile_options.precision);
  report.strategy = search.strategy;
  report.device = device.name();
  report.simulated = device.properties().has_exact_times;
  StrategyContext context(device, compile_options, search, report);
  context.open_ledger(graph);
  const Graph simplified = context.simplify(std::move(graph));
  Proposal found = strategy.run(context, simplified);
  report.cost_after_us = found.steps.empty() ? report.cost_before_us : context.cost_us(found.simplified);
  const bool is_plain = found.steps.empty() && found.schedule.is_sequential();
  const bool was_cancelled = context.is_cancelled();
  if (is_plain && !report.tuned && (strategy.searches || report.simulated)) {
    settle_for_plain(context, context.trial(), found);
  } else if ((!is_plain || report.tuned) && !has_time_to_settle(context)) {
    settle_by_trials(context);
  } else if (!is_plain || report.tuned) {
    found = settle(context, context.trial(), std::move(found), context.propose(simplified));
  }
  if (search.truth) report.compared_with += context.trial().describe_unattested();
  for (const RewriteStep& step : found.steps) report.rules_applied.push_back(applied(step));
  if (context.ledger()) report.ledger = context.node_ledger(found);
  report.search_seconds = since_start.ms() / 1e3;
  const bool is_over = context.is_cut_short() || context.has_spent(1);
  report.stop_reason = was_cancelled ? StopReason::cancelled : is_over ? StopReason::budget : StopReason::done;
  found.finished.inputs_to_states(hidden);
  return {std::move(found.finished), std::move(found.schedule), std::move(report)};
}

std::string_view to_string(StopReason reason) {
  constexpr std::string_view kNames[] = {"done", "budget", "cancelled"};
  return kNames[static_cast<size_t>(reason)];
}

Executable compile(const Optimized& optimized, const CompileOptions& options) {
  CompileOptions with_schedule = options;
  with_schedule.expert.schedule = std::make_shared<Schedule>(optimized.schedule);
  with_schedule.tune = options.tune || optimized.report.tuned;
  with_schedule.expert.tune_in_network =
      options.tune ? options.expert.tune_in_network : optimized.report.tuned_in_network;
  return compile(optimized.graph, with_schedule);
}

}  // namespace autograph

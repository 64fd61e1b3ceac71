// autograph: the optimiser of the AutoGraph paper (AAAI 2023), Algorithm 1 with the readings of docs/design/0003.
//
//   cut the graph into parts where few rewrites are lost, and merge neighbours
//   search each sub-graph by backtracking for the mixed critical path cost
//   put the best ways together by dynamic programming
//   run the best whole graphs on the device, with schedules of one and of several streams
//   go on from the fastest, until nothing gains
#include <algorithm>
#include <map>
#include <set>

#include "engine/strategies/strategy.h"
#include "engine/strategies/trial.h"
#include "engine/strategies/tune_stages.h"
#include "optimize/search/partition.h"
#include "optimize/search/stitch.h"
#include "schedule/list.h"
#include "schedule/nimble.h"
#include "schedule/task_stages.h"

namespace autograph {
namespace {

// Of the budget: when searching ends, and when trials on the device do. The last part is for measuring the result
// against the plain plan.
constexpr double kSearchShare = 0.45;
constexpr double kTrialShare = 0.8;
// Of the budget, for a search of the whole graph, and for stages by dynamic programming.
constexpr double kWholeShare = 0.2;
constexpr double kStagesShare = 0.1;
// Until when the kernels of the plain graph are measured, and those of rewritten ones.
constexpr double kFirstTuningShare = 0.3;
constexpr double kTuningShare = 0.75;
// A part may cost as much more on the way to a gain as gamma allows the whole graph, up to this share of its own cost.
constexpr double kPartSlack = 0.25;
// Graphs of a part that are taken from the queue without a gain.
constexpr int64_t kMaxIdle = 500;
// What is left when trials end must do for the last trial, which may be repeated, and the last measurement.
constexpr double kTrialsToCome = 3.2;
// The same when plans of the best graph are run to choose its kernels: the last of them takes as long as three trials.
constexpr double kNetworkTrialsToCome = kTrialsToCome + 3;
// Runs in a duel of graphs that are slow, with the warm-up.
constexpr double kDuelRuns = 8;
// A weight of the critical path beside which the sum decides between equals alone.
constexpr double kCriticalPathAlone = 1e6;
// Equal plans differed by up to 14 % on a shared virtual machine, for as long as they lived.
constexpr double kClearGain = 0.2;
// Of the rounds, behind a win: asking for more loses every other true gain of a tenth when the machine is busy.
constexpr double kMajority = 0.51;
// A duel may take this part of the budget at least, and that part if time is left and nobody has won; no more seconds
// than these.
constexpr double kShortDuelShare = 0.02;
constexpr double kLongDuelShare = 0.1;
constexpr double kMaxDuelSeconds = 6;

class AutographSearch {
 public:
  explicit AutographSearch(StrategyContext& context)
      : context_(context),
        options_(context.options()),
        has_exact_times_(context.properties().has_exact_times),
        can_time_kernels_(context.properties().can_time_kernels),
        cost_(context.cost()),
        trial_(context.trial()) {}

  Proposal run(const Graph& simplified) {
    best_ = context_.propose(simplified);
    best_.cost_us = context_.report().cost_before_us;
    start_with_plain();
    seen_.insert(structural_hash(best_.finished));
    try_tuning();
    // Where latencies are computed, trials cost nothing, and streams matter most.
    if (has_exact_times_) try_streams();
    if (options_.use_rules) try_ios(simplified);
    for (int round = 0; round < options_.rounds && options_.use_rules && has_time(); ++round) {
      const double before = gained_;
      for (const Proposal& proposal : candidates(best_)) {
        if (!has_time()) break;
        if (!seen_.insert(structural_hash(proposal.finished)).second) continue;
        const bool wins_in_turn = challenge(proposal);
        // What loses one node after the other may win on several streams, where these pay at all.
        const bool is_new_best = wins_in_turn && has_exact_times_;
        if (is_new_best || best_.schedule.width() > 1) try_schedules(proposal);
      }
      if (round == 0 || gained_ < before) try_streams();
      if (gained_ > before * (1 - kLeastGain)) break;
    }
    if (!options_.use_rules) try_streams();
    try_tuning_in_network();
    for (const auto& [hash, sample] : samples_) context_.remember_latency(hash, sample);
    return std::move(best_);
  }

 private:
  // ---- On the device -----------------------------------------------------------------------------------------------

  void start_with_plain() {
    const double start = context_.seconds();
    best_executable_ = trial_.compile(best_);
    const double compiled = context_.seconds();
    trial_.check(best_executable_);
    compile_seconds_ = compiled - start;
    run_seconds_ = context_.seconds() - compiled;
  }

  // Of a challenge with a clear winner.
  double challenge_seconds() const { return compile_seconds_ + kDuelRuns * run_seconds_; }

  // Until the last trial must begin, which leaves time for the last measurement.
  double seconds_left() const {
    const double until =
        std::min(kTrialShare * options_.budget_seconds, options_.budget_seconds - kTrialsToCome * challenge_seconds());
    return until - context_.seconds();
  }

  bool has_time() const { return !context_.is_cancelled() && seconds_left() > 0; }

  // Kernels and layouts chosen by measurement instead of by estimate, when that is faster.
  void try_tuning() {
    const bool is_settled = !can_time_kernels_ || context_.compile_options().tune;
    if (!options_.use_tuning || is_settled || !has_time()) return;
    context_.progress("choosing kernels", best_.cost_us);
    context_.set_tuned(true, kFirstTuningShare);
    context_.set_tuned(wins_as_compiled_now(), kTuningShare);
  }

  // The same for what they take in the network. This takes as long as many trials: for the best graph alone, at the
  // end.
  void try_tuning_in_network() {
    const bool is_settled = !can_time_kernels_ || context_.compile_options().tune;
    const double until = 1 - kNetworkTrialsToCome * challenge_seconds() / options_.budget_seconds;
    if (!options_.use_tuning || is_settled || context_.is_over(until)) return;
    context_.progress("running plans to choose kernels", best_.cost_us);
    const bool was_tuned = context_.is_tuned();
    context_.set_tuned(true, until, true);
    if (!wins_as_compiled_now()) context_.set_tuned(was_tuned, kTuningShare);
  }

  // Does the best graph, compiled as trials are now, beat its executable and give the same numbers? Then that is it.
  bool wins_as_compiled_now() {
    Executable executable = trial_.compile(best_);
    const Duel duel = trial_.duel(best_executable_, executable, duel_seconds());
    const bool wins = duel.is_won(kLeastGain) && trial_.check(executable).ok;
    if (wins) best_executable_ = std::move(executable);
    return wins;
  }

  // A win is repeated, so that a duel may use half of the time that is left.
  double duel_seconds() const {
    const double budget = options_.budget_seconds;
    const double seconds = std::clamp(seconds_left() / 2, kShortDuelShare * budget, kLongDuelShare * budget);
    return std::min(seconds, kMaxDuelSeconds);
  }

  // Takes the proposal when it gives the same numbers in less time.
  bool challenge(Proposal proposal) {
    context_.progress("verifying", best_.cost_us);
    ++context_.report().measured;
    const double start = context_.seconds();
    Executable executable = trial_.compile(proposal);
    compile_seconds_ = context_.seconds() - start;
    if (options_.verify && !trial_.check(executable).ok) return false;
    const Duel duel = trial_.duel(best_executable_, executable, duel_seconds());
    remember(best_, duel.first_ms);
    remember(proposal, duel.second_ms);
    const bool is_won = options_.literal ? duel.second_ms <= duel.first_ms
                                         : duel.is_won(kLeastGain) && wins_again(duel, proposal, executable);
    context_.report().trials.push_back({proposal.cost_us, proposal.steps.size(), proposal.schedule.width(),
                                        duel.second_ms, duel.first_ms, duel.wins, is_won});
    if (!is_won) return false;
    gained_ *= duel.second_ms / duel.first_ms;
    best_ = std::move(proposal);
    best_executable_ = std::move(executable);
    return true;
  }

  // A win that is no larger than what equal plans differ by, when their memory happens to lie elsewhere, must be
  // repeated by plans made anew; `executable` then is the new one.
  bool wins_again(const Duel& duel, const Proposal& proposal, Executable& executable) {
    if (duel.is_won(kClearGain) || has_exact_times_) return true;
    const Executable best = trial_.compile(best_);
    executable = trial_.compile(proposal);
    return trial_.duel(best, executable, duel_seconds()).is_won(kLeastGain, kMajority);
  }

  // What a graph took in its best schedule.
  void remember(const Proposal& proposal, double ms) {
    const auto [at, is_new] = samples_.try_emplace(structural_hash(proposal.finished));
    if (is_new) {
      const GraphScore score = context_.score(proposal.simplified);
      at->second = {score.sum_us, score.critical_us, ms * 1e3};
    }
    at->second.latency_us = std::min(at->second.latency_us, ms * 1e3);
  }

  // The same graph on several streams, in the ways that schedulers propose.
  void try_schedules(const Proposal& of) {
    if (context_.limits().max_streams < 2 || !has_time()) return;
    const TaskGraph tasks = context_.tasks(of.finished);
    std::vector<Schedule> schedules;
    schedules.push_back(schedule_list(tasks, context_.limits()));
    // As many streams as can be pay only where kernels leave room for each other.
    const TaskGraph work = without_free_tasks(tasks).graph;
    const double streams_us =
        estimate_stage_us(work, assign_streams(work, context_.limits()).folded, context_.limits());
    if (streams_us < sequential_us(work)) schedules.push_back(schedule_nimble(tasks, context_.limits()));
    const Proposal base = of;  // `of` may be the best one, which changes
    for (Schedule& schedule : schedules) try_schedule(base, std::move(schedule));
  }

  void try_streams() {
    try_schedules(best_);
    try_stages();
  }

  // Stages by dynamic programming take longer to find: for the best graph alone.
  void try_stages() {
    if (context_.limits().max_streams < 2 || !has_time()) return;
    try_schedule(best_, find_ios_stages(context_, best_.finished, kStagesShare).schedule);
  }

  // Merges of siblings that pay for the room they leave to others, where no rewrite of the graph alone would.
  void try_ios(const Graph& simplified) {
    if (options_.literal || context_.limits().max_streams < 2 || !has_time()) return;
    Proposal proposal = propose_ios(context_, simplified, kStagesShare, kStagesShare);
    if (!seen_.insert(structural_hash(proposal.finished)).second) return;
    proposal.cost_us = context_.score(proposal.simplified).mixed_us(alpha());
    Schedule schedule = std::move(proposal.schedule);
    proposal.schedule = Schedule();
    challenge(proposal);
    try_schedule(std::move(proposal), std::move(schedule));
  }

  // As it is, and with those stages alone that pay on the device.
  void try_schedule(Proposal proposal, Schedule schedule) {
    if (schedule.width() < 2 || !has_time()) return;
    proposal.schedule = std::move(schedule);
    challenge(proposal);
    if (!can_time_kernels_ || !has_time()) return;
    proposal.schedule = keep_paying_stages(trial_, proposal);
    if (proposal.schedule.width() > 1) challenge(std::move(proposal));
  }

  // ---- Candidates ------------------------------------------------------------------------------------------------

  double alpha() const { return options_.use_critical_path ? context_.alpha() : 0; }

  // Whole graphs made from `from`, cheapest first.
  std::vector<Proposal> candidates(const Proposal& from) {
    const Graph& graph = from.simplified;
    const std::vector<RuleMatch> matches = context_.matcher().find_all(graph);
    if (matches.empty()) return {};
    Partition parts = options_.use_partition ? partition(graph, matches, {options_.size_lower, options_.size_upper})
                                             : whole_graph(graph);
    if (!options_.use_dp) {
      std::erase_if(parts.intervals, [](const auto& interval) { return interval.first != interval.second; });
    }
    context_.report().partitions = std::max(context_.report().partitions, parts.parts.size());
    const std::vector<IntervalOptions> intervals = search_intervals(graph, parts);
    std::vector<Proposal> proposals;
    add_whole(proposals, from);
    const auto add = [&](const Stitched& stitched) {
      add_proposal(proposals, from, assemble(graph, intervals, stitched), steps_of(intervals, stitched));
    };
    for (const Stitched& stitched : stitch(graph, intervals, parts.parts.size(), alpha(), keep())) add(stitched);
    if (options_.literal || !options_.use_critical_path) return proposals;
    // The winners by the sum and by the critical path alone: the weight between them is only a guess.
    for (const double extreme : {0.0, kCriticalPathAlone}) {
      add(stitch(graph, intervals, parts.parts.size(), extreme, 1).front());
    }
    // Time may not do for all of them.
    std::stable_sort(proposals.begin(), proposals.end(),
                     [](const Proposal& a, const Proposal& b) { return a.cost_us < b.cost_us; });
    return proposals;
  }

  void add_proposal(std::vector<Proposal>& proposals, const Proposal& from, Graph graph,
                    const std::vector<RewriteStep>& more) {
    // The finishing passes take their time: not again for what was proposed before.
    if (more.empty() || !proposed_.insert(structural_hash(graph)).second) return;
    std::vector<RewriteStep> steps = from.steps;
    steps.insert(steps.end(), more.begin(), more.end());
    proposals.push_back(context_.propose(std::move(graph), std::move(steps)));
    proposals.back().cost_us = context_.score(proposals.back().simplified).mixed_us(alpha());
  }

  // The least sum that a short search of the whole graph finds: rewrites that reach over many parts, such as products
  // of one weight, and steps that cost more than a part may lose on the way to a gain.
  void add_whole(std::vector<Proposal>& proposals, const Proposal& from) {
    if (options_.literal || !options_.use_partition) return;
    const CandidateGraph start(from.simplified, cost_);
    const std::vector<Rewritten> found =
        context_.search(start, {.alpha = 0, .keep = 2}, share_now() + kWholeShare, best_.cost_us);
    add_proposal(proposals, from, found.front().candidate->graph(), found.front().steps);
  }

  size_t keep() const { return static_cast<size_t>(options_.keep); }

  std::vector<IntervalOptions> search_intervals(const Graph& graph, const Partition& parts) {
    std::vector<IntervalOptions> result;
    for (size_t n = 0; n < parts.intervals.size(); ++n) {
      const auto [first, last] = parts.intervals[n];
      std::vector<NodeId> nodes;
      for (uint32_t p = first; p <= last; ++p) {
        nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
      }
      IntervalOptions interval{first, last, std::make_shared<PartGraph>(extract_part(graph, nodes)), {}};
      interval.options = search_part(*interval.part, parts.intervals.size() - n);
      result.push_back(std::move(interval));
    }
    return result;
  }

  // Parts that are equal but for their weights are searched once.
  std::vector<Rewritten> search_part(const PartGraph& part, size_t num_left) {
    const CandidateGraph start(part.graph, cost_);
    const Hash128 key = part_key(part);
    if (const auto known = memo_.find(key); known != memo_.end()) {
      std::vector<Rewritten> options{{std::make_shared<CandidateGraph>(start), {}}};
      for (const std::vector<RewriteStep>& steps : known->second) {
        Rewritten again = replay(start, context_.matcher(), steps);
        if (again.steps.size() == steps.size()) options.push_back(std::move(again));
      }
      return options;
    }
    const double until = share_now() + (kSearchShare - share_now()) / static_cast<double>(num_left);
    BacktrackingOptions how{.alpha = alpha(), .keep = keep(), .literal = options_.literal};
    if (!options_.literal) {
      how.slack_us = std::min((options_.gamma - 1) * best_.cost_us, kPartSlack * start.score().mixed_us(alpha()));
      how.max_idle = kMaxIdle;
    }
    std::vector<Rewritten> found = context_.search(start, how, until, best_.cost_us);
    for (Rewritten& one : found) one.candidate = std::make_shared<CandidateGraph>(one.candidate->graph(), cost_);
    auto& steps = memo_[key];
    for (const Rewritten& one : found) {
      if (!one.steps.empty()) steps.push_back(one.steps);
    }
    return found;
  }

  double share_now() const { return context_.seconds() / options_.budget_seconds; }

  StrategyContext& context_;
  const SearchOptions& options_;
  const bool has_exact_times_;
  const bool can_time_kernels_;
  FusedCost cost_;
  const Trial& trial_;
  Proposal best_;
  Executable best_executable_;
  double compile_seconds_ = 0;  // of the last challenger
  double run_seconds_ = 0;      // of the plain graph, with the comparison of numbers
  double gained_ = 1;           // latency of the best over that of the graph at the start
  std::map<Hash128, LatencySample> samples_;
  std::set<Hash128> proposed_;  // before the finishing passes
  std::set<Hash128> seen_;      // behind them
  std::map<Hash128, std::vector<std::vector<RewriteStep>>> memo_;
};

}  // namespace

Proposal run_autograph(StrategyContext& context, const Graph& simplified) {
  return AutographSearch(context).run(simplified);
}

}  // namespace autograph

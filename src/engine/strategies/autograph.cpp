// autograph: the optimiser of the AutoGraph paper (AAAI 2023), Algorithm 1 with the readings of docs/design/0003.
//
//   cut the graph into parts where few rewrites are lost, and merge neighbours
//   search each sub-graph by backtracking for the mixed critical path cost
//   put the best ways together by dynamic programming
//   run the best whole graphs on the device, with schedules of one and of several streams
//   where streams share the device, cut kernels that fill little of it into parts that run side by side
//   rewrite the fastest as long as its schedule ends sooner, and run what comes of that
//   go on from the fastest, until nothing gains
//
// `search` is this alone; `autograph`, what users get, tries what its rivals propose beside it. `paper` is Algorithm 1
// as it stands.
#include <algorithm>
#include <limits>
#include <set>

#include "engine/strategies/diversity.h"
#include "engine/strategies/part_search.h"
#include "engine/strategies/piece_schedule.h"
#include "engine/strategies/schedule_climb.h"
#include "engine/strategies/spread_kernels.h"
#include "engine/strategies/strategy.h"
#include "engine/strategies/trials/incumbent.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/nimble.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Of the budget: when looking for what rules match, to cut the graph by it, ends.
constexpr double kMatchShare = 0.35;
// The same for searching.
constexpr double kSearchShare = 0.45;
// Of the budget, for cutting a graph and cutting out its parts where searching them would be over: what was found for
// equal parts before is used again.
constexpr double kCutShare = 0.1;
// Where parts are searched twice: how much earlier the first search ends.
constexpr double kSecondSearchShare = 0.15;
// Of the budget, for a search of the whole graph for the least sum; where streams share the device the sum tells
// little.
constexpr double kWholeShare = 0.2;
constexpr double kSharedWholeShare = 0.05;
// Of the budget, for stages by dynamic programming.
constexpr double kStagesShare = 0.1;
// The same for choosing among the options of parts by the schedule of the whole.
constexpr double kRefineShare = 0.1;
// The same for rewriting the whole by its schedule.
constexpr double kClimbShare = 0.15;
// The same for cutting kernels into parts.
constexpr double kSpreadShare = 0.1;
// When rewriting by the schedule ends at the latest, so that what it finds can still be tried.
constexpr double kClimbEnd = 0.7;
// Where streams share the device that goes on until this part of the budget.
constexpr double kSharedClimbEnd = 0.8;
// Of the budget: when no further whole graph is put together, once there is one, and for how long graphs are in any
// case. Large ones take long to finish.
constexpr double kProposeShare = 0.55;
constexpr double kAssembleShare = 0.05;
// When all of these end at the latest: finishing, trying and measuring what was found takes time, too.
constexpr double kLatestEnd = 0.85;
// Graphs with more nodes are large.
constexpr size_t kLargeGraph = 2000;
// A search of the whole graph ends when it has looked at so many nodes without a gain, or at a few graphs: gains that
// do not touch each other are taken at once.
constexpr size_t kIdleNodes = 200'000;
constexpr size_t kMinIdle = 10;
constexpr size_t kMaxIdle = 500;
// A weight of the critical path beside which the sum decides between equals alone.
constexpr double kCriticalPathAlone = 1e6;

// What the search may try: its own graphs and list schedules, or what `ios` and `nimble` propose as well.
enum class Portfolio { alone, with_rivals };

class AutographSearch {
 public:
  AutographSearch(StrategyContext& context, const Graph& simplified, Portfolio portfolio)
      : context_(context),
        options_(context.options()),
        has_exact_times_(context.properties().has_exact_times),
        is_shared_(context.has_loads(simplified)),
        use_rivals_(portfolio == Portfolio::with_rivals && !context.is_literal()),
        cost_(context.cost(), is_shared_ && !context.is_literal() ? context.limits().max_streams : 1),
        time_cost_(context.cost()),
        simplified_(simplified),
        incumbent_(context, context.propose(simplified)),
        plain_(incumbent_.best()),
        part_search_(context, cost_),
        timed_part_search_(context, time_cost_) {}

  Proposal run() {
    // Where measuring kernels takes long, rewrites come first; where latencies are computed, a schedule of the plain
    // graph takes little time, and nothing that is found in the end is worse.
    const bool is_large = simplified_.num_nodes() > kLargeGraph;
    bool is_prepared = has_exact_times_ || (!is_large && incumbent_.has_many_trials());
    if (is_prepared) prepare();
    for (int round = 0; round < options_.rounds && options_.use_rules && has_time(); ++round) {
      const double before = incumbent_.gained();
      if (round == 0) try_all(candidates_by_time());
      const std::vector<Proposal> found = candidates(round == 0 && searches_twice() ? plain_ : incumbent_.best());
      if (!is_prepared && is_behind_plain_schedule(found)) schedule_best();
      try_all(found);
      // Climbing may take what time there is for trials.
      if (is_prepared) schedule_best();
      if (!is_large) {
        if (round == 0) try_all(spread(plain_));
        try_all(spread(incumbent_.best()));
        try_all(climbed(incumbent_.best()));
        try_all(spread(incumbent_.best()));
      }
      is_prepared ? schedule_best() : prepare();
      is_prepared = true;
      if (incumbent_.gained() >= before * (1 - incumbent_.least_gain())) break;
    }
    if (!is_prepared) prepare();
    if (is_shared_ && !is_large) climb_from_others();
    if (use_rivals_ && context_.limits().max_streams > 1 && has_time()) try_rivals();
    incumbent_.try_tuning_in_network();
    return incumbent_.take();
  }

 private:
  // Kernels and a schedule for the best graph so far.
  void prepare() {
    incumbent_.try_tuning();
    schedule_best();
  }

  // Where there is time for a trial or two, what is predicted to take less time comes first: the plain graph on several
  // streams, or what was found.
  bool is_behind_plain_schedule(const std::vector<Proposal>& found) {
    if (context_.limits().max_streams < 2 || found.empty() || found.front().makespan_us <= 0) return false;
    const std::optional<double> plain_us = context_.makespan_us(plain_.finished);
    const std::optional<double> in_sequence_us = context_.predicted_us(plain_);
    return plain_us && in_sequence_us && *plain_us < found.front().makespan_us && *plain_us < *in_sequence_us;
  }

  // What other strategies propose takes longer to find and to try than what the search finds itself: last, so that they
  // never take its time.
  void try_rivals() {
    if (!has_exact_times_) {
      if (const auto tasks = context_.tasks(incumbent_.best().finished)) try_nimble(incumbent_.best(), *tasks);
    }
    try_stages();
    if (options_.use_rules) try_ios();
  }

  // ---- On the device -----------------------------------------------------------------------------------------------

  bool has_time() const { return incumbent_.has_time(); }

  void try_all(const std::vector<Proposal>& proposals) {
    std::vector<Composition> losers;
    for (const Proposal& proposal : proposals) {
      if (!has_time()) return;
      if (!incumbent_.is_new_graph(proposal) || is_hopeless(proposal)) continue;
      const Composition composition = composition_of(proposal);
      if (std::any_of(losers.begin(), losers.end(),
                      [&](const Composition& loser) { return loser.distance(composition) < kNearlyTheSame; })) {
        continue;
      }
      const size_t num_trials = context_.report().trials.size();
      // What loses one node after the other may win on several streams, where these pay at all; where streams share the
      // device nothing is won without them, unless no schedule of the graph has any.
      const bool needs_streams = is_shared_ && incumbent_.best().schedule.width() > 1;
      const bool is_new_best = !needs_streams && incumbent_.try_candidate(proposal) && has_exact_times_;
      const bool has_streams = (is_new_best || incumbent_.best().schedule.width() > 1) && try_schedules(proposal);
      if (needs_streams && !has_streams && has_time()) incumbent_.try_candidate(proposal);
      if (has_lost_clearly(num_trials)) losers.push_back(composition);
    }
  }

  // By what the schedule says, if it was asked.
  bool is_hopeless(const Proposal& proposal) {
    return proposal.makespan_us > 0 && incumbent_.is_hopeless(proposal.makespan_us);
  }

  // In all trials from this one on.
  bool has_lost_clearly(size_t first) const {
    const auto& trials = context_.report().trials;
    return trials.size() > first &&
           std::all_of(trials.begin() + static_cast<std::ptrdiff_t>(first), trials.end(), [](const TrialResult& trial) {
             return trial.is_right && !trial.accepted && trial.latency_ms > kClearLoss * trial.best_ms;
           });
  }

  Composition composition_of(const Proposal& proposal) {
    return Composition(proposal.finished,
                       [&](NodeId id) { return context_.cost().node_us(proposal.finished, id, context_.threads()); });
  }

  // The same graph on several streams, as a list schedules it; false: it has none. Takes a copy: the best may change.
  bool try_schedules(Proposal base) {
    if (context_.limits().max_streams < 2 || !has_time()) return false;
    scheduled_.insert(structural_hash(base.finished));
    const std::optional<TaskGraph> tasks = context_.tasks(base.finished);
    if (!tasks) return false;
    Schedule list = schedule_list(*tasks, context_.limits());
    const bool has_streams = list.width() > 1;
    incumbent_.try_schedule(base, std::move(list));
    // Where latencies are computed, trials cost nothing.
    if (use_rivals_ && has_exact_times_) try_nimble(std::move(base), *tasks);
    return has_streams;
  }

  // Stages between tasks that nothing can run beside, and the whole: as many streams as can be pay only where kernels
  // leave room for each other.
  void try_nimble(Proposal base, const TaskGraph& tasks) {
    if (!has_time()) return;
    incumbent_.try_schedule(base, schedule_nimble_stages(tasks, context_.limits()));
    if (!has_time()) return;
    const TaskGraph work = without_free_tasks(tasks).graph;
    if (work.size() > kMaxTasksOfStreams) return;  // then it has stages alone
    const double streams_us =
        estimate_stage_us(work, assign_streams(work, context_.limits()).folded, context_.limits());
    if (streams_us < sequential_us(work)) {
      incumbent_.try_schedule(std::move(base), schedule_nimble(tasks, context_.limits()));
    }
  }

  void schedule_best() {
    if (!has_time()) return;  // hashing a large graph takes some
    if (!scheduled_.contains(structural_hash(incumbent_.best().finished))) try_schedules(incumbent_.best());
  }

  // Stages by dynamic programming take longer to find: for the best graph alone.
  void try_stages() {
    const double share = share_left(kStagesShare);
    if (share <= 0 || !has_time()) return;
    const Proposal base = incumbent_.best();
    incumbent_.try_schedule(base, find_ios_stages(context_, base, share).schedule);
  }

  // Merges of siblings that pay for the room they leave to others, where no rewrite of the graph alone would.
  void try_ios() {
    const double share = share_left(2 * kStagesShare) / 2;
    if (share <= 0 || !has_time()) return;
    Proposal proposal = propose_ios(context_, simplified_, share, share);
    if (!incumbent_.is_new_graph(proposal)) return;
    proposal.cost_us = context_.score(proposal.simplified).mixed_us(alpha());
    Schedule schedule = std::move(proposal.schedule);
    proposal.schedule = Schedule();
    incumbent_.try_candidate(proposal);
    incumbent_.try_schedule(std::move(proposal), std::move(schedule));
  }

  // ---- Candidates ------------------------------------------------------------------------------------------------

  double alpha() const { return options_.use_critical_path ? context_.alpha() : 0; }

  // Whole graphs made from `from`, cheapest first, those that differ before variants of one.
  std::vector<Proposal> candidates(const Proposal& from) {
    const Graph& graph = from.simplified;
    const double match_end = until(kMatchShare);
    const std::vector<RuleMatch> matches =
        context_.matcher().find_all(graph, {[&] { return context_.is_over(match_end); }});
    if (matches.empty() || is_late()) return {};
    const double cut_end = std::max(until(kSearchShare), end_of(kCutShare));
    Partition parts =
        options_.use_partition
            ? partition(graph, matches,
                        {options_.size_lower, options_.size_upper, [&] { return context_.is_over(cut_end); }})
            : whole_graph(graph);
    if (!options_.use_dp) {
      std::erase_if(parts.intervals, [](const auto& interval) { return interval.first != interval.second; });
    }
    context_.report().partitions = std::max(context_.report().partitions, parts.parts.size());
    PartSearch& part_search = by_time_ ? timed_part_search_ : part_search_;
    const std::vector<IntervalOptions> intervals = part_search.run(graph, parts, part_limits(cut_end));
    if (is_late()) return {};
    std::vector<Proposal> proposals;
    if (!by_time_) add_whole(proposals, from);  // which counts time in any case
    if (is_late()) return proposals;
    if (intervals.empty()) return ordered(std::move(proposals));
    Assembler assembler(graph, intervals, context_.matcher());
    const std::vector<Stitched> found = ways(graph, intervals, parts.parts.size());
    const double end = std::max(until(kProposeShare), end_of(kAssembleShare));
    for (const Stitched& way : found) {
      if (!proposals.empty() && context_.is_over(end)) break;
      Assembler::Whole whole = assembler.assemble(way.pieces);
      add_proposal(proposals, from, std::move(whole.graph), whole.steps);
    }
    return ordered(std::move(proposals));
  }

  bool searches_twice() const { return is_shared_ && !context_.is_literal(); }

  // Where streams share the device parts are searched for the time that kernels take, which shortens the longest way,
  // and then once more for what keeps the device busy.
  std::vector<Proposal> candidates_by_time() {
    if (!searches_twice() || !has_time()) return {};
    by_time_ = true;
    std::vector<Proposal> found = candidates(plain_);
    by_time_ = false;
    return found;
  }

  // Rewrites of the whole graph that end its schedule sooner.
  std::vector<Proposal> climbed(const Proposal& from) {
    if (context_.is_literal() || !options_.use_critical_path || !has_time()) return {};
    climbed_.insert(structural_hash(from.simplified));
    std::vector<Proposal> proposals;
    const double end =
        is_shared_ ? std::max(end_of(kClimbShare), kSharedClimbEnd) : std::min(share_now() + kClimbShare, kClimbEnd);
    for (const Rewritten& found :
         climb_by_schedule(context_, from.simplified, time_cost_, end, incumbent_.best().cost_us)) {
      if (!proposals.empty() && context_.is_over(kLatestEnd)) break;
      add_proposal(proposals, from, found.candidate->graph(), found.steps);
    }
    return in_turn(std::move(proposals));
  }

  // Kernels that fill little of the device in parts that run side by side; not from one graph twice.
  std::vector<Proposal> spread(const Proposal& from) {
    if (!is_shared_ || context_.is_literal() || !options_.use_critical_path || !has_time()) return {};
    if (!spread_.insert(structural_hash(from.simplified)).second) return {};
    const Rewritten found = spread_kernels(context_, from.simplified, time_cost_, end_of(kSpreadShare));
    std::vector<Proposal> proposals;
    add_proposal(proposals, from, found.candidate->graph(), found.steps);
    return in_turn(std::move(proposals));
  }

  // From the next best, where there is time: the best may stand at an end that they do not.
  void climb_from_others() {
    std::stable_sort(starts_.begin(), starts_.end(),
                     [](const Proposal& a, const Proposal& b) { return a.makespan_us < b.makespan_us; });
    const std::vector<Proposal> starts = std::move(starts_);
    for (const Proposal& start : starts) {
      if (!has_time() || context_.is_over(kSharedClimbEnd)) return;
      if (!climbed_.contains(structural_hash(start.simplified))) try_all(climbed(start));
    }
  }

  // Cheapest first, or by their schedules where these decide.
  std::vector<Proposal> ordered(std::vector<Proposal> proposals) {
    const bool is_by_schedule = !context_.is_literal() && options_.use_critical_path;
    return is_by_schedule ? in_turn(std::move(proposals)) : proposals;
  }

  // By the makespans of the finished graphs, those that differ first.
  std::vector<Proposal> in_turn(std::vector<Proposal> proposals) {
    // Time may not do for all of them: those that were not scheduled come last.
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    for (Proposal& proposal : proposals) {
      proposal.makespan_us = context_.makespan_us(proposal.finished).value_or(kUnknown);
    }
    std::stable_sort(proposals.begin(), proposals.end(),
                     [](const Proposal& a, const Proposal& b) { return a.makespan_us < b.makespan_us; });
    std::vector<Composition> compositions;
    for (const Proposal& proposal : proposals) compositions.push_back(composition_of(proposal));
    std::vector<Proposal> ordered;
    for (const size_t next : diverse_order(compositions)) ordered.push_back(std::move(proposals[next]));
    if (is_shared_) starts_.insert(starts_.end(), ordered.begin(), ordered.end());
    return ordered;
  }

  // Until when, as a part of the budget.
  double until(double share) const { return by_time_ ? share - kSecondSearchShare : share; }

  PartSearch::Limits part_limits(double cut_end) const {
    const double slack_us = context_.is_literal() ? 0 : (options_.gamma - 1) * incumbent_.best().cost_us;
    return {alpha(), slack_us, incumbent_.best().cost_us, until(kSearchShare), cut_end};
  }

  // How the pieces may be put together, the most promising way first.
  std::vector<Stitched> ways(const Graph& graph, const std::vector<IntervalOptions>& intervals, size_t num_parts) {
    const auto stitched = [&](double weight, size_t keep) {
      return stitch(graph, intervals, num_parts,
                    {weight, keep, [this] { return context_.is_over(until(kProposeShare)); }});
    };
    std::vector<Stitched> best = stitched(alpha(), keep());
    if (context_.is_literal() || !options_.use_critical_path) return best;
    // The winners by the sum and by the critical path alone, too, since the weight between them is only a guess.
    std::vector<Stitched> starts = {best.front()};
    for (const double extreme : {0.0, kCriticalPathAlone}) starts.push_back(stitched(extreme, 1).front());
    std::vector<Stitched> all = refined(intervals, starts);
    all.insert(all.end(), best.begin(), best.end());
    all.insert(all.end(), starts.begin() + 1, starts.end());
    return all;
  }

  // What the schedule of the whole makes of each.
  std::vector<Stitched> refined(const std::vector<IntervalOptions>& intervals, const std::vector<Stitched>& starts) {
    PieceSchedule schedule(
        intervals,
        [&](const Graph& option, NodeId id) {
          const double us = cost_.node_us(option, id);
          return context_.task_to_finish(option, id, us, cost_.node_load(option, id, us));
        },
        context_.limits());
    const double end = end_of(kRefineShare);
    context_.set_measuring(false);
    std::vector<Stitched> result;
    for (const Stitched& start : starts) {
      context_.progress("scheduling", incumbent_.best().cost_us);
      result.push_back(schedule.refine(start, [&] { return context_.is_over(end); }));
    }
    context_.set_measuring(true);
    std::stable_sort(result.begin(), result.end(), [](const Stitched& a, const Stitched& b) { return a.us < b.us; });
    return result;
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
    if (context_.is_literal() || !options_.use_partition) return;
    const CandidateGraph start(from.simplified, time_cost_);
    const auto max_idle =
        static_cast<int64_t>(std::clamp(kIdleNodes / (1 + from.simplified.num_nodes()), kMinIdle, kMaxIdle));
    const std::vector<Rewritten> found =
        context_.search(start, {.alpha = 0, .max_idle = max_idle, .keep = 2},
                        end_of(is_shared_ ? kSharedWholeShare : kWholeShare), incumbent_.best().cost_us);
    add_proposal(proposals, from, found.front().candidate->graph(), found.front().steps);
  }

  size_t keep() const { return static_cast<size_t>(options_.keep); }

  double share_now() const { return context_.share_spent(); }

  // On the way to a proposal there are steps that no clock ends: large graphs take seconds for each.
  bool is_late() const { return context_.is_over(kLatestEnd); }

  // When what may take this part of the budget ends.
  double end_of(double share) const { return std::min(share_now() + share, kLatestEnd); }

  // The same for what counts no candidates.
  double share_left(double share) const {
    return context_.counts_candidates() ? share : std::min(share, kLatestEnd - share_now());
  }

  StrategyContext& context_;
  const SearchOptions& options_;
  const bool has_exact_times_;
  const bool is_shared_;   // streams share the device
  const bool use_rivals_;  // also what other strategies propose
  FusedCost cost_;         // of parts
  FusedCost time_cost_;    // of the whole graph in sequence
  const Graph& simplified_;
  Incumbent incumbent_;
  const Proposal plain_;
  PartSearch part_search_;
  PartSearch timed_part_search_;
  bool by_time_ = false;          // parts are searched for the time that kernels take
  std::set<Hash128> proposed_;    // before the finishing passes
  std::set<Hash128> climbed_;     // the same, where climbing began
  std::set<Hash128> spread_;      // where cutting kernels into parts did
  std::set<Hash128> scheduled_;   // finished
  std::vector<Proposal> starts_;  // where it may begin
};

}  // namespace

Proposal run_search(StrategyContext& context, const Graph& simplified) {
  return AutographSearch(context, simplified, Portfolio::alone).run();
}

Proposal run_autograph(StrategyContext& context, const Graph& simplified) {
  return AutographSearch(context, simplified, Portfolio::with_rivals).run();
}

}  // namespace autograph

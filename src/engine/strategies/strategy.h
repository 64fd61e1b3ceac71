// Strategies: named ways from a simplified graph to a graph and a schedule. One file each; all use the same passes,
// kernels and runtime.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/devices.h"
#include "autograph/search.h"
#include "cost/measurement_cache.h"
#include "optimize/cost/cost_model.h"
#include "optimize/search/backtracking.h"
#include "optimize/search/ledger.h"
#include "schedule/schedulers/ios.h"
#include "schedule/schedulers/task_graph.h"

namespace autograph {

class Trial;

/// A graph and a schedule that a strategy thinks good.
struct Proposal {
  Graph simplified;   ///< Between the two halves of the passes: where a search could go on.
  Graph finished;     ///< Behind them: what runs.
  Schedule schedule;  ///< Of the nodes of `finished`.
  std::vector<RewriteStep> steps;
  double cost_us = 0;      ///< By the cost model.
  double makespan_us = 0;  ///< Of `finished` in its best list schedule, by the costs of its kernels; 0: not asked.
};

/// What strategies ask and where they report to. For one thread.
class StrategyContext {
 public:
  StrategyContext(const Device& device, const CompileOptions& compile, const SearchOptions& search,
                  SearchReport& report);
  ~StrategyContext();

  const Device& device() const { return device_; }
  const DeviceProperties& properties() const { return properties_; }
  const CompileOptions& compile_options() const { return compile_; }
  const SearchOptions& options() const { return search_; }
  SearchReport& report() { return report_; }
  /// Is Algorithm 1 of the AutoGraph paper wanted as it stands?
  bool is_literal() const { return search_.literal || search_.strategy == Strategy::paper; }
  CostModel& cost() { return *cost_; }
  /// All rules but those that are disabled.
  const std::vector<const Rule*>& rules() const { return rules_; }
  /// Of what the strategy looks for everywhere.
  const RuleMatcher& matcher() const { return *matcher_; }
  int threads() const { return threads_; }
  /// Trials compile from now on with kernels chosen by measurement, alone or in the network, or by estimate. Behind
  /// `until`, a part of the budget, what has not been measured is chosen by estimate.
  void set_tuned(bool tuned, double until, bool in_network = false) {
    report_.tuned = tuned;
    report_.tuned_in_network = in_network;
    tune_until_ = until;
  }
  bool is_tuned() const { return report_.tuned; }
  bool is_tuned_in_network() const { return report_.tuned_in_network; }
  bool may_tune() const { return !has_spent(tune_until_); }

  /// Runs the simplifying passes, and notes which of them removed the node that was asked about.
  Graph simplify(Graph graph);
  /// Runs the finishing passes.
  Graph finish(Graph simplified) const;
  /// Tasks of a finished graph: on all threads, and on those of one stream, with the kernels and reorders that
  /// compiling it would choose. Nothing where the budget ends meanwhile: nodes of large graphs take seconds to cost.
  std::optional<TaskGraph> tasks(const Graph& finished);
  /// The task of a node of a graph that finishing is still to come for, which takes what FusedCost says.
  Task task_to_finish(const Graph& graph, NodeId id, double us, const KernelLoad& load);
  /// Makespan of a finished graph in its best list schedule; nothing where the budget ends meanwhile.
  std::optional<double> makespan_us(const Graph& finished);
  /// What the proposal takes in its schedule, by the costs of its kernels; nothing where the budget ends meanwhile.
  std::optional<double> predicted_us(const Proposal& proposal);
  /// Do streams share the device, as its cost model tells?
  bool has_loads(const Graph& graph);
  /// What a node that takes `us` on all threads takes on those of one stream.
  double narrow_us(const Graph& graph, NodeId id, double us);
  /// As many streams as processors, or as the options say.
  StreamLimits limits() const;
  /// A proposal without a schedule.
  Proposal propose(Graph simplified, std::vector<RewriteStep> steps = {}) const;
  /// Sum of costs and critical path of a simplified graph.
  GraphScore score(const Graph& simplified);
  /// The same as the strategy weighs them, with those of the options.
  double cost_us(const Graph& simplified);
  /// Costs the graph that the search begins with, for the report: for strategies to ask once the plain plan is there.
  /// Its kernels are measured as long as they may, those that matter most first. Where there will be no time for more
  /// its cost is not asked for.
  void cost_plain(const Graph& simplified);
  /// Weight of the critical path: as the options say, or fitted to what graphs took on this device.
  double alpha() const { return report_.alpha; }
  /// Remembers what a finished graph took, in its best schedule, for later fits of alpha.
  void remember_latency(const Hash128& graph, const LatencySample& sample);
  /// Backtracks from `start` until `until`, a part of the budget, is over; gamma and the limit of candidates are those
  /// of the options. Few of the kernels that were not measured yet are measured meanwhile: rules make many that nobody
  /// will keep.
  /// Counts candidates and shows `shown_us`, or the best cost of this search where that is 0.
  std::vector<Rewritten> search(const CandidateGraph& start, BacktrackingOptions options, double until,
                                double shown_us = 0) {
    return search_by(backtrack, start, std::move(options), until, shown_us);
  }
  /// The same by another way: backtrack() or search_equalities().
  using SearchWay = std::vector<Rewritten>(const CandidateGraph&, const RuleMatcher&, const BacktrackingOptions&);
  std::vector<Rewritten> search_by(SearchWay& way, const CandidateGraph& start, BacktrackingOptions options,
                                   double until, double shown_us);
  /// Kernels that were not measured yet are estimated while this is off.
  void set_measuring(bool measuring) { measuring_ = measuring ? Measuring::on : Measuring::off; }
  /// For running proposals on the device.
  const Trial& trial();

  /// What running the plain plan for the first time told.
  struct PlainRun {
    Difference difference;
    double ms = 0;          ///< Of that run, by the clock of a simulated device, or in a trial.
    bool is_timed = false;  ///< In a trial.
  };
  void set_plain_run(PlainRun run) { plain_run_ = std::move(run); }
  const std::optional<PlainRun>& plain_run() const { return plain_run_; }
  /// What the trials of the result told, for where no time is left to measure it once more.
  struct BestRun {
    Difference difference;     ///< Of its first run.
    double ms = 0;             ///< In the trial that it won.
    double gained = 1;         ///< Its latency over that of the plain plan, by all trials that were won.
    double trial_seconds = 0;  ///< To compile and run it once more.
  };
  void set_best_run(BestRun run) { best_run_ = std::move(run); }
  const std::optional<BestRun>& best_run() const { return best_run_; }
  /// Notes what is tried at the node that was asked about; null when none was.
  Ledger* ledger() { return ledger_ ? &*ledger_ : nullptr; }
  /// Keeps a ledger of the node that the options name, in `graph` as the user has it. ValueError when it has none such.
  void open_ledger(const Graph& graph);
  /// Notes what became of rewrites that ran on the device together: all of `steps`, `fresh` of them more than the best
  /// until then has.
  struct TrialOutcome {
    RewriteFate fate = RewriteFate::lost_trial;
    double gain_us = 0;
    size_t fresh = 0;
  };
  void note_trial(const std::vector<RewriteStep>& steps, const TrialOutcome& outcome);
  /// What the report tells of the node where `found` is the result.
  NodeLedger node_ledger(const Proposal& found) const;

  /// Since the command began.
  double seconds() const;
  /// What the search may take: the budget but for what is reserved.
  double budget_seconds() const { return search_.budget_seconds - reserved_seconds_; }
  /// Leaves this much of the budget to the caller, up to a half.
  void reserve(double seconds) { reserved_seconds_ = std::min(seconds, search_.budget_seconds / 2); }
  /// The part of the budget that has been spent: of its seconds, or of its candidates where these count.
  double share_spent() const;
  bool counts_candidates() const { return search_.candidates > 0; }
  /// Has this part of the budget been spent, or was the search cancelled?
  bool has_spent(double share) const;
  /// The same, asked by who ends for it what there was more of to do.
  bool is_over(double share) const;
  /// Did anything end before there was nothing left to try?
  bool is_cut_short() const { return is_cut_short_; }
  void cut_short() { is_cut_short_ = true; }
  /// Of the clock, for what cannot count candidates; as good as unlimited where they count.
  double seconds_of(double share) const;
  /// Is the budget over by the clock, or was the search cancelled? What is being measured ends as soon as it can.
  bool is_out_of_time() const { return is_cancelled() || (!counts_candidates() && seconds() > budget_seconds()); }
  bool is_cancelled() const { return search_.is_cancelled && search_.is_cancelled(); }
  /// Tells how far the search is; a few times a second at most.
  void progress(std::string_view phase, double best_us);
  /// Counts a candidate, and tells.
  void count_candidate(std::string_view phase, double best_us);

 private:
  std::string sampled_on() const;
  void choose_alpha();
  // Something that takes about so many seconds.
  bool may_measure(double seconds) const;
  bool has_time_to_cost() const;
  std::string removed_by(const Proposal& found) const;

  class Costs;
  const Device& device_;
  const DeviceProperties properties_;
  const CompileOptions& compile_;
  const SearchOptions& search_;
  SearchReport& report_;
  int threads_;
  enum class Measuring : uint8_t { off, sparing, on };
  Measuring measuring_ = Measuring::on;
  mutable bool is_cut_short_ = false;
  double sparing_seconds_ = 0;  // spent with measuring while searches ran, but for the present one
  double sparing_since_ = 0;    // what was spent with measuring before that
  double tune_until_ = 1;
  double simplify_seconds_ = 0;
  double reserved_seconds_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_progress_{};
  std::unique_ptr<Costs> costs_;
  CostModel* cost_ = nullptr;
  std::vector<const Rule*> rules_;
  std::unique_ptr<RuleMatcher> matcher_;
  std::unique_ptr<Trial> trial_;
  std::optional<PlainRun> plain_run_;
  std::optional<BestRun> best_run_;
  std::optional<Ledger> ledger_;
  std::string removed_by_;  // the simplifying pass that removed the node; "": none
  std::vector<std::pair<std::vector<RewriteStep>, TrialOutcome>> tried_;  // with the rewrites that concern the node
};

/// A named strategy.
struct StrategyDef {
  Strategy id;
  std::string_view name;
  std::string_view doc;   ///< One line.
  bool searches = false;  ///< Takes more than a second on large graphs.
  Proposal (*run)(StrategyContext& context, const Graph& simplified);
  bool uses_critical_path = false;  ///< Its cost is the mixed one; that of others is the sum.
};

/// What a strategy is.
const StrategyDef& get_strategy(Strategy id);

/// Stages of a proposal's finished graph by dynamic programming, taking at most this part of the budget. Costs of
/// stages are measured where the device can time kernels.
IosResult find_ios_stages(StrategyContext& context, const Proposal& proposal, double share);

/// What `ios` proposes for a graph, taking at most these parts of the budget for merges and for stages.
Proposal propose_ios(StrategyContext& context, const Graph& simplified, double merge_share, double stages_share);

Proposal run_sequential(StrategyContext& context, const Graph& simplified);
Proposal run_greedy(StrategyContext& context, const Graph& simplified);
Proposal run_taso(StrategyContext& context, const Graph& simplified);
Proposal run_ios(StrategyContext& context, const Graph& simplified);
Proposal run_nimble(StrategyContext& context, const Graph& simplified);
Proposal run_taso_nimble(StrategyContext& context, const Graph& simplified);
Proposal run_list(StrategyContext& context, const Graph& simplified);
Proposal run_search(StrategyContext& context, const Graph& simplified);
Proposal run_autograph(StrategyContext& context, const Graph& simplified);

}  // namespace autograph

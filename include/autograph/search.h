// Searching for a faster graph and schedule: strategies, what they take and what they tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autograph/compile.h"
#include "autograph/graph.h"
#include "autograph/rule_set.h"
#include "autograph/schedule.h"
#include "autograph/truth.h"

namespace autograph {

/// How far a search is.
struct SearchProgress {
  std::string phase;          ///< "measuring kernels", "searching", "verifying", ...
  size_t candidates = 0;      ///< Graphs looked at so far.
  double best_cost_us = 0;    ///< Of the best graph so far, by the cost model.
  double start_cost_us = 0;   ///< Of the graph at the start.
  double seconds = 0;         ///< Since the start.
  double budget_seconds = 0;  ///< Of all the search.
};

/// Of the budget of a search: how long the reference may take for all outputs of the graph.
inline constexpr double kTruthShare = 0.25;

/// Ways to find a graph and a schedule, the plainest first.
enum class Strategy : uint8_t {
  sequential,   ///< Every node by itself on all threads; no rewriting.
  greedy,       ///< Stages of all nodes that are ready; no rewriting.
  list,         ///< Stages of one wide stream or of several, by list scheduling; no rewriting.
  taso,         ///< Backtracking over rules for the least sum of costs (SOSP 2019); one stream.
  ios,          ///< Stages by dynamic programming (MLSys 2021).
  nimble,       ///< As many streams as the graph is wide, fewest waits (NeurIPS 2020).
  taso_nimble,  ///< The graphs of taso with the streams of nimble: "taso+nimble".
  paper,        ///< Algorithm 1 of the AutoGraph paper (AAAI 2023) as it stands.
  search,       ///< Partition, backtracking, dynamic programming, list schedules, verification on the device.
  autograph     ///< `search`, and what `ios` and `nimble` propose beside it.
};

/// "taso+nimble".
std::string_view to_string(Strategy strategy);

/// Throws ValueError with the nearest name when there is no such strategy.
Strategy strategy_named(std::string_view name);

/// All strategies, the plainest first.
std::vector<Strategy> available_strategies();

/// How to search.
struct SearchOptions {
  Strategy strategy = Strategy::autograph;
  /// Weight of the critical path: cost = alpha * critical path + sum. Unset: what fits the graphs that were measured on
  /// this device before best, by least squares; 1 where these are too few, or latencies are computed.
  std::optional<double> alpha = {};
  double gamma = 1.05;         ///< Keep candidates up to gamma times the best cost.
  double budget_seconds = 60;  ///< Stop after this time, with the best so far.
  double spent_seconds = 0;    ///< Of the budget: what loading the graph has taken, before optimize() was called.
  /// How often the caller will compile and run the result, to check and to save it: the budget leaves time for that.
  int runs_to_come = 0;
  /// Stop after looking at about so many graphs, however long that takes: what is found then depends on nothing but the
  /// graph, the options and the cache, where latencies are computed. 0: the budget decides.
  int candidates = 0;
  int64_t max_candidates = 2000;  ///< Graphs taken from the queue of one part.
  int size_lower = 12;            ///< Parts are cut until they have fewer nodes than this (Size_L).
  int size_upper = 30;            ///< Neighbours are merged up to this many nodes (Size_U).
  int keep = 6;                   ///< Candidates kept of each part, and verified on the device (K).
  int rounds = 3;                 ///< Outer rounds at most.
  int max_streams = 0;            ///< Streams at most; 0: one for each processor that may be used.
  bool literal = false;           ///< Algorithm 1 of the paper as it stands.
  bool use_partition = true;      ///< Off: one part.
  bool use_dp = true;             ///< Off: minimal parts alone, without merges of neighbours.
  bool use_critical_path = true;  ///< Off: alpha is 0.
  bool use_rules = true;          ///< Off: only the schedule is searched.
  bool use_tuning = true;         ///< Try kernels chosen by measurement (CompileOptions::tune) and keep the faster.
  bool never_slower = true;       ///< Give the plain plan where nothing found is faster; off for comparisons.
  bool verify = true;             ///< Compare the outputs of accepted candidates with the truth about the graph.
  /// Parts are also searched by equality graphs (docs/design/0003), in half of the time that parts have.
  bool use_equality = false;
  /// What the graph gives on `inputs`, where it is known already. Null: found before the search begins; where the
  /// reference would take longer than a part of the budget, parts of the graph are compared.
  std::shared_ptr<const Truth> truth = nullptr;
  std::vector<std::string> disabled_rules = {};  ///< Rules to leave out, by name.
  /// Rules to try beside the built-in ones: of a file (load_rules() of prove.h). Null: none.
  std::shared_ptr<const RuleSet> rules = nullptr;
  /// A node to keep a ledger of, by its name, by one of its outputs', or by several "a + b" as passes join them; "":
  /// none. ValueError with the nearest name when the graph has no such node.
  std::string why = {};
  std::vector<Datum> inputs = {};  ///< On which candidates are measured and verified; empty: drawn from `seed`.
  uint64_t seed = 0;               ///< Of the inputs on which candidates are measured and verified.
  std::function<void(const SearchProgress&)> on_progress = nullptr;  ///< Called a few times a second.
  std::function<bool()> is_cancelled = nullptr;  ///< Asked often; true ends the search with the best so far.
};

/// What the truth about a graph may take of the budget of a search. Where candidates count, no clock decides.
TruthLimits truth_limits(const SearchOptions& search);

/// A rewrite that the result contains.
struct AppliedRule {
  std::string rule;    ///< Name of the rule.
  std::string where;   ///< The nodes it replaced, in the words of the user.
  double gain_us = 0;  ///< By the cost model, at the moment it was applied.
};

/// What became of a rewrite that a search looked at.
enum class RewriteFate : uint8_t {
  kept,          ///< The result contains it.
  lost_trial,    ///< In a graph that ran on the device and was not faster.
  not_verified,  ///< In a graph that gave other numbers on the device.
  not_chosen,    ///< Cheap enough to go on from, but no graph that ran on the device had it: others gained more.
  /// What it makes of a graph costs more than a graph may on the way to a gain, even where it gains: the best graph so
  /// far says how much, and that may be another one than the graph it was tried on.
  behind_limit
};

/// "kept", "lost trial", "not verified", "not chosen", "behind the limit".
std::string_view to_string(RewriteFate fate);

/// A line of the ledger: a rewrite that makes, or would have made, something else of the node that was asked about.
struct LedgerEntry {
  std::string rule;                ///< Name of the rule.
  std::vector<std::string> nodes;  ///< Names of the original nodes that it takes.
  RewriteFate fate = RewriteFate::not_chosen;
  double predicted_us = 0;  ///< Gain by the cost model; less than 0: it costs.
  /// Gain on the device of the graph that had it, in the trial that decided; unset where none did.
  std::optional<double> measured_us = {};
  size_t shared_by = 0;  ///< Rewrites that made this graph of the best until then: measured_us is theirs together.
  size_t times = 1;      ///< How often it was tried.
  /// What predicted_us is a gain of: "mixed cost", "sum of costs" or "schedule". Rewrites that are in no graph that ran
  /// on the device have an entry for each; "" for others.
  std::string objective = {};
};

/// What became of the node that was asked about.
struct NodeLedger {
  std::string node;                 ///< As it was asked for.
  std::vector<std::string> became;  ///< Nodes of the result that stand for it: "op: origins"; none: it is gone.
  /// Where it is gone: the pass or rule that removed the last node which stood for it, and what that does: "pass
  /// fold_constants (Compute what depends on constants alone.)", "rule matmul.regroup_right".
  std::string removed_by = {};
  std::vector<LedgerEntry> entries;  ///< Kept ones in the order in which they were applied, then others by prediction.
};

/// Why a search ended.
enum class StopReason : uint8_t {
  done,      ///< There was nothing left to try.
  budget,    ///< Its time, or that of a phase, or the number of candidates was over with something left to try.
  cancelled  ///< SearchOptions::is_cancelled said so.
};

/// "done", "budget", "cancelled".
std::string_view to_string(StopReason reason);

/// A graph and a schedule that a search ran on the device, in turns with the best until then.
struct TrialResult {
  double cost_us = 0;       ///< By the cost model.
  size_t rewrites = 0;      ///< Rules applied.
  int streams = 1;          ///< Of the schedule.
  double latency_ms = 0;    ///< Median over rounds; where the trial was repeated, the mean of both.
  double best_ms = 0;       ///< Of the best until then.
  double wins = 0;          ///< Share of the rounds in which it was faster.
  bool accepted = false;    ///< It became the best.
  double predicted_us = 0;  ///< Makespan of the schedule by the costs of its kernels; 0: no time was left to ask.
  bool is_right = true;     ///< It gave the numbers that it should; else it was not timed.
};

/// What a search found and how.
struct SearchReport {
  Strategy strategy = Strategy::sequential;
  std::string device;                         ///< Device of the measurements.
  bool simulated = false;                     ///< Latencies are of a simulated device.
  double alpha = 0;                           ///< Weight of the critical path in the costs.
  bool is_alpha_fitted = false;               ///< By least squares, over graphs measured on this device before.
  bool tuned = false;                         ///< Kernels chosen by measurement are faster: compile() chooses them so.
  bool tuned_in_network = false;              ///< As ExpertOptions::tune_in_network says.
  double cost_before_us = 0;                  ///< By the cost model.
  double cost_after_us = 0;                   ///< By the cost model.
  double latency_before_ms = 0;               ///< Of the plain plan, median, measured in turns with the result.
  double latency_after_ms = 0;                ///< Of the result.
  size_t candidates = 0;                      ///< Graphs looked at.
  size_t measured = 0;                        ///< Graphs and schedules run on the device.
  size_t partitions = 0;                      ///< Parts that the graph was cut into.
  double search_seconds = 0;                  ///< All of it.
  std::string compared_with;                  ///< Truth::how(), and what was not attested; "": nothing was compared.
  bool agrees = true;                         ///< The result gives the numbers that it should.
  double max_abs = 0;                         ///< Largest difference of an output from what it should be.
  double max_rel = 0;                         ///< The same over the largest magnitude of the output.
  bool kept_plain = false;                    ///< Nothing found was faster: the plain plan is the result.
  StopReason stop_reason = StopReason::done;  ///< Why it ended when it did.
  std::vector<AppliedRule> rules_applied;     ///< In order.
  std::vector<TrialResult> trials;            ///< In order.
  std::optional<NodeLedger> ledger = {};      ///< Of SearchOptions::why.
};

/// A graph with the schedule that was found for it. Run it with compile(); passes have been run.
struct Optimized {
  Graph graph;
  Schedule schedule;
  SearchReport report;
};

/// Of what use a rule beside the built-in ones is on a graph.
struct RuleUse {
  std::string rule;    ///< Its name.
  size_t matches = 0;  ///< Places of the graph, behind the simplifying passes, where it applies.
  size_t applied = 0;  ///< How often the best graph that was found has it, where that is better than without.
  double gain_us = 0;  ///< What all added rules together gain, by the cost model; 0 where this one is not in it.
};

/// What those of SearchOptions::rules that match gain in a search of the whole graph for the least sum of costs, by
/// estimated costs; nothing is run. Looks for `budget_seconds`. Needs static input shapes.
std::vector<RuleUse> rule_use(const Graph& graph, const CompileOptions& options, const SearchOptions& search);

/// Throws ValueError with the nearest name when `graph` has no node that SearchOptions::why could mean by `name`.
void require_node(const Graph& graph, const std::string& name);

/// Searches with `search.strategy` for the device and threads of `options`. The result is never slower than the plain
/// plan, as far as it could be measured, and gives the same numbers. Needs static input shapes; throws ShapeError.
Optimized optimize(Graph graph, const CompileOptions& options, const SearchOptions& search);

/// Compiles what optimize() found.
Executable compile(const Optimized& optimized, const CompileOptions& options);

}  // namespace autograph

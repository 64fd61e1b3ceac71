#include "engine/strategies/strategy.h"

#include <algorithm>

#include "autograph/cpu_count.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "cost/attester.h"
#include "cost/catalog_cost.h"
#include "cost/fit_alpha.h"
#include "cost/layout_cost.h"
#include "cost/measured_cost.h"
#include "engine/check/attestation.h"
#include "engine/executable.h"
#include "engine/strategies/spread_kernels.h"
#include "engine/strategies/trials/trial.h"
#include "engine/thread_scope.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

constexpr StrategyDef kStrategies[] = {
    {Strategy::sequential, "sequential", "Every node by itself on all threads; no rewriting.", false, run_sequential},
    {Strategy::greedy, "greedy", "Stages of all nodes that are ready; no rewriting.", false, run_greedy},
    {Strategy::list, "list", "Stages of one wide stream or of several, by list scheduling; no rewriting.", true,
     run_list},
    {Strategy::taso, "taso", "Backtracking over rules for the least sum of costs (SOSP 2019); one stream.", true,
     run_taso},
    {Strategy::ios, "ios", "Stages by dynamic programming (MLSys 2021); no other rewriting than merges.", true,
     run_ios},
    {Strategy::nimble, "nimble", "As many streams as the graph is wide, fewest waits (NeurIPS 2020); no rewriting.",
     true, run_nimble},
    {Strategy::taso_nimble, "taso+nimble", "The graphs of taso with the streams of nimble.", true, run_taso_nimble},
    {Strategy::paper, "paper", "Algorithm 1 of the AutoGraph paper (AAAI 2023) as it stands.", true, run_search, true},
    {Strategy::search, "search",
     "Partition, backtracking for the mixed critical path cost, dynamic programming, list schedules, verification on "
     "the device (after AAAI 2023).",
     true, run_search, true},
    {Strategy::autograph, "autograph", "search, and what ios and nimble propose beside it.", true, run_autograph, true},
};

// Costs of kernels are measured during this part of the budget; later ones are estimated.
constexpr double kMeasuringShare = 0.55;
// Of the budget, for measuring costs at most, all kernels together.
constexpr double kMeasuredShare = 1.0 / 3;
// The same while rules are tried, all searches together. A network that repeats its blocks has few kernels: what merges
// and splits of them really take is soon known.
constexpr double kSparingShare = 0.1;
// Kernels that take longer are not measured on the threads of a stream: they scale.
constexpr double kWideUs = 400;
constexpr double kScaling = 0.95;
// Where too few graphs were measured to fit it.
constexpr double kDefaultAlpha = 1;
constexpr double kUnlimitedSeconds = 1e6;
// Kernels and layouts of larger graphs are not chosen only to know what they take.
constexpr size_t kMostNodesWithLayouts = 2000;
// Costing a graph takes once to twice as long as the passes that simplify it.
constexpr double kCostingToSimplifying = 2;
constexpr auto kProgressInterval = std::chrono::milliseconds(200);

}  // namespace

std::vector<Strategy> available_strategies() {
  std::vector<Strategy> all;
  for (const StrategyDef& strategy : kStrategies) all.push_back(strategy.id);
  return all;
}

const StrategyDef& get_strategy(Strategy id) {
  for (const StrategyDef& strategy : kStrategies) {
    if (strategy.id == id) return strategy;
  }
  throw InternalError(fmt::format("strategy {} has no definition", static_cast<int>(id)));
}

std::string_view to_string(Strategy strategy) { return get_strategy(strategy).name; }

Strategy strategy_named(std::string_view name) {
  std::vector<std::string> known;
  for (const StrategyDef& strategy : kStrategies) {
    if (strategy.name == name) return strategy.id;
    known.emplace_back(strategy.name);
  }
  throw ValueError(fmt::format("[search] strategy: expected one of {}, got '{}'{}", bracketed(known), name,
                               did_you_mean(std::string(name), known)));
}

// The cost model with what it stands on.
class StrategyContext::Costs {
 public:
  Costs(const Device& device, const CompileOptions& compile, int threads, std::function<bool(double)> may_measure)
      : device_(device.identity()),
        catalog_(device.catalog()),
        host_threads_(device.host_threads()),
        cache_(cache_folder_of(compile)),
        measured_(device, cache_),
        known_(device, cache_, nullptr, [] { return false; }),
        by_kernels_(with_judge(
            device, compile,
            {device.catalog(), measured_, threads, compile.exact, device.host_threads(), std::move(may_measure)})),
        by_device_(device.cost_model()) {}

  /// Samples of latencies hold for equal numbers of threads and streams.
  std::vector<LatencySample> samples(const std::string& on) { return cache_.samples(device_ + on); }
  void store_sample(const std::string& on, const std::string& graph, const LatencySample& sample) {
    cache_.store_sample(device_ + on, graph, sample);
  }

  // Of a graph behind all passes; empty where the device has no layouts, or the graph is so large that choosing kernels
  // takes long.
  std::vector<LayoutCost> layouts(const Graph& finished, const CompileOptions& compile, int threads, bool is_tuned) {
    if (by_device_ || !catalog_.can_reorder() || finished.num_nodes() > kMostNodesWithLayouts) return {};
    KernelCost estimates;
    return layout_costs(finished, {.catalog = catalog_,
                                   .cost = is_tuned ? known_ : estimates,
                                   .threads = threads,
                                   .exact = compile.exact,
                                   .host_threads = host_threads_,
                                   .judge = judge_ ? &*judge_ : nullptr});
  }

  CostModel& model() { return by_device_ ? *by_device_ : by_kernels_; }
  void measure(const Graph& graph, int threads) {
    if (!by_device_) by_kernels_.measure(graph, threads);
  }
  double seconds_measured() const { return by_kernels_.seconds_measured(); }

 private:
  CatalogCostOptions with_judge(const Device& device, const CompileOptions& compile, CatalogCostOptions options) {
    if (Verdicts* verdicts = verdicts_of(device, compile)) {
      judge_.emplace(*verdicts, error_model_of(compile), false);
      options.judge = &*judge_;
    }
    return options;
  }

  std::string device_;
  const KernelCatalog& catalog_;
  const HostThreads& host_threads_;
  MeasurementCache cache_;
  std::optional<Attester> judge_;
  MeasuredCost measured_;
  MeasuredCost known_;  // the same, which measures nothing
  CatalogCost by_kernels_;
  std::unique_ptr<CostModel> by_device_;  // null where the device has none
};

StrategyContext::StrategyContext(const Device& device, const CompileOptions& compile, const SearchOptions& search,
                                 SearchReport& report)
    : device_(device),
      properties_(device.properties()),
      compile_(compile),
      search_(search),
      report_(report),
      threads_(compile.threads > 0 ? compile.threads : usable_cpu_count()) {
  costs_ = std::make_unique<Costs>(device, compile, threads_, [this](double seconds) { return may_measure(seconds); });
  cost_ = &costs_->model();
  std::vector<const Rule*> all = rules_for_search(compile.exact);
  const size_t num_built_in = all.size();
  for (size_t i = 0; search.rules && i < search.rules->size(); ++i) all.push_back(&search.rules->rule(i));
  for (const std::string& name : search.disabled_rules) {
    const bool is_added = std::any_of(all.begin() + static_cast<std::ptrdiff_t>(num_built_in), all.end(),
                                      [&](const Rule* rule) { return rule->name == name; });
    if (!is_added) get_rule(name);  // says what is near
  }
  for (const Rule* rule : all) {
    const auto& off = search.disabled_rules;
    if (std::find(off.begin(), off.end(), rule->name) == off.end()) rules_.push_back(rule);
  }
  // Our own search tries by the schedule what spreads kernels (spread_kernels.h), and by nothing else.
  std::vector<const Rule*> matched = rules_;
  if (!is_literal() && (search.strategy == Strategy::search || search.strategy == Strategy::autograph)) {
    std::erase_if(matched, [](const Rule* rule) { return rule->kind == RuleClass::spreads; });
  }
  matcher_ = std::make_unique<RuleMatcher>(matched);
  choose_alpha();
}

// "on": what samples depend on beside the device.
std::string StrategyContext::sampled_on() const {
  return fmt::format(" | {} threads, {} streams, {}", threads_, limits().max_streams, to_string(compile_.precision));
}

// Where latencies are computed every graph has its own already; a fit would let each search change the next.
void StrategyContext::choose_alpha() {
  const bool is_fixed = search_.alpha || properties_.has_exact_times;
  const std::optional<double> fitted = is_fixed ? std::nullopt : fit_alpha(costs_->samples(sampled_on()));
  report_.is_alpha_fitted = fitted.has_value();
  report_.alpha = search_.alpha.value_or(fitted.value_or(kDefaultAlpha));
}

void StrategyContext::remember_latency(const Hash128& graph, const LatencySample& sample) {
  if (!properties_.has_exact_times) costs_->store_sample(sampled_on(), to_string(graph), sample);
}

StrategyContext::~StrategyContext() = default;

Graph StrategyContext::finish(Graph simplified) const {
  return prepare_graph(std::move(simplified), device_, compile_, PassHalf::finish);
}

StreamLimits StrategyContext::limits() const {
  const int most = properties_.max_streams > 0 ? properties_.max_streams : threads_;
  return {search_.max_streams > 0 ? search_.max_streams : most, properties_.sync_us};
}

bool StrategyContext::may_measure(double seconds) const {
  const double budget = budget_seconds();
  if (measuring_ == Measuring::off || has_spent(kMeasuringShare)) return false;
  const double spent = costs_->seconds_measured() + seconds;
  if (!counts_candidates() && this->seconds() + seconds > kMeasuringShare * budget) return false;
  if (spent > kMeasuredShare * budget) return false;
  return measuring_ == Measuring::on || sparing_seconds_ + spent - sparing_since_ < kSparingShare * budget;
}

// By the clock alone where no candidates count. Behind the plain plan there is no search where this would end the
// budget, and of 100,000 nodes it takes seconds.
bool StrategyContext::has_time_to_cost() const {
  if (counts_candidates()) return !is_cancelled();
  return !is_out_of_time() && seconds() + kCostingToSimplifying * simplify_seconds_ < budget_seconds();
}

void StrategyContext::cost_plain(const Graph& simplified) {
  if (!has_time_to_cost()) return;
  costs_->measure(simplified, threads_);
  report_.cost_before_us = cost_us(simplified);
}

double StrategyContext::cost_us(const Graph& simplified) {
  const bool is_mixed = get_strategy(search_.strategy).uses_critical_path && search_.use_critical_path;
  return score(simplified).mixed_us(is_mixed ? alpha() : 0);
}

double StrategyContext::narrow_us(const Graph& graph, NodeId id, double us) {
  if (properties_.max_streams > 0) return us;  // each stream has the whole device
  const int narrow = std::max(1, threads_ / limits().max_streams);
  const double wide_us = cost_->node_us(graph, id, threads_);
  if (narrow == threads_ || wide_us <= 0) return us;
  const double slowdown =
      wide_us > kWideUs ? kScaling * threads_ / narrow : cost_->node_us(graph, id, narrow) / wide_us;
  return us * std::max(1.0, slowdown);
}

std::optional<TaskGraph> StrategyContext::tasks(const Graph& finished) {
  const ThreadScope scope(device_, threads_);
  bool is_stopped = false;
  const std::vector<LayoutCost> layouts = costs_->layouts(finished, compile_, threads_, is_tuned() || compile_.tune);
  progress("measuring kernels", 0);
  costs_->measure(finished, threads_);
  TaskGraph graph_of_tasks = make_task_graph(finished, [&](const Graph& graph, NodeId id) {
    is_stopped = is_stopped || is_out_of_time();
    if (is_stopped) return Task{id};
    progress("measuring kernels", 0);
    const double alone_us = cost_->node_us(graph, id, threads_);
    const double us = layouts.empty() ? alone_us : layouts[id.index].apply(alone_us);
    return Task{id, us, narrow_us(graph, id, us), cost_->node_load(graph, id).value_or(KernelLoad{})};
  });
  if (!is_stopped) return graph_of_tasks;
  cut_short();
  return std::nullopt;
}

Task StrategyContext::task_to_finish(const Graph& graph, NodeId id, double us, const KernelLoad& load) {
  return {id, us, us > 0 ? narrow_us(graph, id, us) : 0, load};
}

std::optional<double> StrategyContext::makespan_us(const Graph& finished) {
  const std::optional<TaskGraph> known = tasks(finished);
  if (!known) return std::nullopt;
  const TaskGraph work = without_free_tasks(*known).graph;
  return estimate_us(work, list_stages(work, limits()), limits());
}

std::optional<double> StrategyContext::predicted_us(const Proposal& proposal) {
  const std::optional<TaskGraph> known = tasks(proposal.finished);
  if (!known) return std::nullopt;
  const WorkGraph work = without_free_tasks(*known);
  if (proposal.schedule.is_sequential()) return sequential_us(work.graph);
  std::vector<TaskIndex> task_of(proposal.finished.node_capacity(), static_cast<TaskIndex>(work.graph.size()));
  for (TaskIndex task = 0; task < work.graph.size(); ++task) task_of[work.graph.tasks[task].node.index] = task;
  std::vector<TaskStreams> stages;
  for (const Stage& stage : proposal.schedule.stages) {
    stages.emplace_back();
    for (const auto& stream : stage.streams) {
      stages.back().emplace_back();
      for (const NodeId id : stream) {
        if (task_of[id.index] < work.graph.size()) stages.back().back().push_back(task_of[id.index]);
      }
    }
  }
  return estimate_us(work.graph, stages, limits());
}

bool StrategyContext::has_loads(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return cost_->node_load(graph, id).has_value(); });
}

GraphScore StrategyContext::score(const Graph& simplified) {
  FusedCost cost(*cost_);
  return CandidateGraph(simplified, cost).score();
}

Proposal StrategyContext::propose(Graph simplified, std::vector<RewriteStep> steps) const {
  Proposal proposal;
  proposal.finished = finish(simplified);
  proposal.simplified = std::move(simplified);
  proposal.steps = std::move(steps);
  return proposal;
}

std::vector<Rewritten> StrategyContext::search_by(SearchWay& way, const CandidateGraph& start,
                                                  BacktrackingOptions options, double until, double shown_us) {
  options.gamma = search_.gamma;
  options.max_popped = search_.max_candidates;
  options.should_stop = [&] { return is_over(until); };
  options.ledger = ledger();
  options.may_try = [](const CandidateGraph& candidate, const RuleMatch& match) {
    return match.rule().kind != RuleClass::spreads || has_room_beside(candidate, match.nodes().front());
  };
  options.on_candidate = [&](double best_us) { count_candidate("searching", shown_us > 0 ? shown_us : best_us); };
  const Measuring before = measuring_;
  sparing_since_ = costs_->seconds_measured();
  measuring_ = before == Measuring::off ? Measuring::off : Measuring::sparing;
  std::vector<Rewritten> found = way(start, *matcher_, options);
  measuring_ = before;
  sparing_seconds_ += costs_->seconds_measured() - sparing_since_;
  return found;
}

const Trial& StrategyContext::trial() {
  if (!trial_) trial_ = std::make_unique<Trial>(*this);
  return *trial_;
}

double StrategyContext::seconds() const {
  return search_.spent_seconds + std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

double StrategyContext::share_spent() const {
  if (counts_candidates()) return static_cast<double>(report_.candidates) / search_.candidates;
  return seconds() / budget_seconds();
}

bool StrategyContext::has_spent(double share) const { return is_cancelled() || share_spent() > share; }

bool StrategyContext::is_over(double share) const {
  if (!has_spent(share)) return false;
  is_cut_short_ = true;
  return true;
}

double StrategyContext::seconds_of(double share) const {
  return counts_candidates() ? kUnlimitedSeconds : share * budget_seconds();
}

void StrategyContext::progress(std::string_view phase, double best_us) {
  const auto now = std::chrono::steady_clock::now();
  if (!search_.on_progress || now - last_progress_ < kProgressInterval) return;
  last_progress_ = now;
  search_.on_progress(
      {std::string(phase), report_.candidates, best_us, report_.cost_before_us, seconds(), search_.budget_seconds});
}

void StrategyContext::count_candidate(std::string_view phase, double best_us) {
  ++report_.candidates;
  progress(phase, best_us);
}

}  // namespace autograph

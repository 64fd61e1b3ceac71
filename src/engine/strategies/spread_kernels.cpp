#include "engine/strategies/spread_kernels.h"

#include <algorithm>
#include <map>

#include "engine/strategies/diversity.h"
#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Parts of a kernel that takes less would hardly do more than start.
constexpr double kLeastUs = 6;
// Where a kernel fills more of the processors, parts of it leave each other no room.
constexpr double kMostProcessors = 0.9;
// Gains below this share of the makespan are not worth a graph with more nodes.
constexpr double kMinGain = 1e-4;
constexpr int kMaxSweeps = 3;

class SpreadSearch {
 public:
  SpreadSearch(StrategyContext& context, const Graph& graph, FusedCost& cost, double until)
      : context_(context),
        until_(until),
        rules_(rules_that_spread(context)),
        matcher_(rules_),
        makespan_(context.limits()),
        start_(graph, cost),
        current_(start_) {
    start_.forget_paths();
    current_.forget_paths();
  }

  Rewritten run() {
    best_us_ = whole_us(current_);
    const std::vector<std::vector<NodeId>> groups = groups_of_like_nodes();
    for (int sweep = 0; sweep < kMaxSweeps && !is_over(); ++sweep) {
      const double before = best_us_;
      for (const auto& group : groups) improve(group);
      for (const auto& group : groups) {
        for (const NodeId id : group) improve({id});
      }
      if (best_us_ == before) break;
    }
    return result();
  }

 private:
  using Chosen = std::map<NodeId, const Rule*>;

  static std::vector<const Rule*> rules_that_spread(const StrategyContext& context) {
    std::vector<const Rule*> rules = context.rules();
    std::erase_if(rules, [](const Rule* rule) { return rule->kind != RuleClass::spreads; });
    return rules;
  }

  bool is_over() const { return context_.is_over(until_); }

  double whole_us(const CandidateGraph& candidate) {
    const TaskGraph tasks = make_task_graph(candidate.graph(), [&](const Graph& g, NodeId id) {
      return context_.task_to_finish(g, id, candidate.node_us(id), candidate.node_load(id));
    });
    return makespan_.us(without_free_tasks(tasks).graph);
  }

  // Nodes that may be cut, those alike together, what takes longest first.
  std::vector<std::vector<NodeId>> groups_of_like_nodes() const {
    const Graph& graph = start_.graph();
    std::map<Hash128, std::vector<NodeId>> by_kind;
    for (const NodeId id : graph.topological_order()) {
      if (!has_room_beside(start_, id) || matcher_.find_at(graph, id).empty()) continue;
      by_kind[kind_alone(graph, graph.node(id))].push_back(id);
    }
    std::vector<std::vector<NodeId>> groups;
    for (auto& [kind, nodes] : by_kind) groups.push_back(std::move(nodes));
    std::stable_sort(groups.begin(), groups.end(), [&](const auto& a, const auto& b) {
      const double a_us = start_.node_us(a.front()), b_us = start_.node_us(b.front());
      return a_us != b_us ? a_us > b_us : a.front() < b.front();
    });
    return groups;
  }

  // Cuts all of `nodes` as is best for the whole, or leaves them in one piece.
  void improve(const std::vector<NodeId>& nodes) {
    const Rule* now = rule_of(nodes.front());
    Chosen best = chosen_;
    double best_us = best_us_ * (1 - kMinGain);
    for (const Rule* rule : choices(nodes.front())) {
      if (is_over()) return;
      if (rule == now && nodes.size() == 1) continue;
      Chosen chosen = chosen_;
      for (const NodeId id : nodes) chosen[id] = rule;
      const double us = tried_us(chosen, nodes, rule);
      if (us >= best_us) continue;
      best_us = us;
      best = std::move(chosen);
    }
    if (best == chosen_) return;
    chosen_ = std::move(best);
    best_us_ = best_us;
    current_ = make(chosen_);
  }

  const Rule* rule_of(NodeId id) const {
    const auto found = chosen_.find(id);
    return found == chosen_.end() ? nullptr : found->second;
  }

  // Null: in one piece, which is a choice only where it is not so.
  std::vector<const Rule*> choices(NodeId id) const {
    std::vector<const Rule*> rules;
    for (const RuleMatch& match : matcher_.find_at(start_.graph(), id)) rules.push_back(&match.rule());
    if (rule_of(id)) rules.push_back(nullptr);
    return rules;
  }

  // What is in one piece yet is cut for the trial alone; else the graph is made anew.
  double tried_us(const Chosen& chosen, const std::vector<NodeId>& nodes, const Rule* rule) {
    context_.count_candidate("spreading kernels", best_us_);
    if (std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) { return rule_of(id); })) return whole_us(make(chosen));
    double us = best_us_;
    current_.tentatively([&] {
      for (const NodeId id : nodes) cut(current_, id, *rule);
      us = whole_us(current_);
    });
    return us;
  }

  CandidateGraph make(const Chosen& chosen) const {
    CandidateGraph candidate = start_;
    for (const auto& [id, rule] : chosen) {
      if (rule) cut(candidate, id, *rule);
    }
    return candidate;
  }

  std::optional<RuleMatch> match_at(const Graph& graph, NodeId id, const Rule& rule) const {
    for (RuleMatch& match : matcher_.find_at(graph, id)) {
      if (&match.rule() == &rule) return std::move(match);
    }
    return std::nullopt;
  }

  void cut(CandidateGraph& candidate, NodeId id, const Rule& rule) const {
    if (const auto match = match_at(candidate.graph(), id, rule)) candidate.apply(*match);
  }

  Rewritten result() {
    auto candidate = std::make_shared<CandidateGraph>(start_);
    std::vector<RewriteStep> steps;
    double us = whole_us(*candidate);
    for (const auto& [id, rule] : chosen_) {
      const auto match = rule ? match_at(candidate->graph(), id, *rule) : std::nullopt;
      if (!match) continue;
      RewriteStep step{rule, match->nodes(), describe_match(candidate->graph(), *match), 0,
                       origins_of(candidate->graph(), match->nodes())};
      if (!candidate->apply(*match)) continue;
      const double after_us = whole_us(*candidate);
      step.gain_us = us - after_us;
      us = after_us;
      steps.push_back(std::move(step));
    }
    candidate->find_paths();
    return {std::move(candidate), std::move(steps)};
  }

  StrategyContext& context_;
  const double until_;
  const std::vector<const Rule*> rules_;
  const RuleMatcher matcher_;
  ListMakespan makespan_;
  CandidateGraph start_;
  CandidateGraph current_;  // with what is chosen
  Chosen chosen_;           // how nodes of the start are cut; null: in one piece
  double best_us_ = 0;
};

}  // namespace

bool has_room_beside(const CandidateGraph& candidate, NodeId node) {
  const double processors = candidate.node_load(node).processors;
  return processors > 0 && processors < kMostProcessors && candidate.node_us(node) > kLeastUs;
}

Rewritten spread_kernels(StrategyContext& context, const Graph& graph, FusedCost& cost, double until) {
  return SpreadSearch(context, graph, cost, until).run();
}

}  // namespace autograph

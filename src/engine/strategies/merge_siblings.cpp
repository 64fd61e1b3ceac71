#include "engine/strategies/merge_siblings.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace autograph {
namespace {

constexpr std::array<std::string_view, 4> kMergingRules = {"conv.merge_same_input", "conv.merge_enlarged",
                                                           "matmul.merge_columns", "matmul.merge_gemm"};

std::vector<const Rule*> merging_among(const std::vector<const Rule*>& rules) {
  std::vector<const Rule*> merging;
  std::copy_if(rules.begin(), rules.end(), std::back_inserter(merging), [](const Rule* rule) {
    return std::find(kMergingRules.begin(), kMergingRules.end(), rule->name) != kMergingRules.end();
  });
  return merging;
}

bool contains(const std::vector<NodeId>& nodes, NodeId id) {
  return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
}

bool is_within(const RuleMatch& match, const std::vector<NodeId>& nodes) {
  return std::all_of(match.nodes().begin(), match.nodes().end(), [&](NodeId id) { return contains(nodes, id); });
}

}  // namespace

SiblingMerges::SiblingMerges(StrategyContext& context, const Graph& simplified)
    : context_(context),
      cost_(context.cost()),
      rules_(merging_among(context.rules())),
      matcher_(rules_),
      start_(simplified, cost_) {
  start_.forget_paths();
  for (const RuleMatch& match : matcher_.find_all(start_.graph())) {
    for (const NodeId id : match.nodes()) {
      for (const NodeId other : match.nodes()) {
        if (id != other) siblings_[id].push_back(other);
      }
    }
  }
}

// Two of the nodes at a time: what comes of them is merged with the next.
bool SiblingMerges::merge(CandidateGraph& candidate, std::vector<NodeId> nodes, std::vector<RewriteStep>* steps) const {
  while (nodes.size() > 1) {
    const std::vector<RuleMatch> matches = matcher_.find_near(candidate.graph(), nodes);
    const auto next =
        std::find_if(matches.begin(), matches.end(), [&](const RuleMatch& match) { return is_within(match, nodes); });
    if (next == matches.end()) return false;
    const double us_before = candidate.score().sum_us;
    const OpDef* op = &candidate.graph().node(next->nodes().front()).op();
    RewriteStep step{&next->rule(), next->nodes(), describe_match(candidate.graph(), *next), 0,
                     origins_of(candidate.graph(), next->nodes())};
    RuleEffect effect;
    if (!candidate.apply(*next, &effect)) return false;
    step.gain_us = us_before - candidate.score().sum_us;
    std::erase_if(nodes, [&](NodeId id) { return contains(step.nodes, id); });
    if (steps) steps->push_back(std::move(step));
    for (const NodeId id : effect.added) {
      if (candidate.graph().is_live(id) && &candidate.graph().node(id).op() == op) nodes.push_back(id);
    }
  }
  return true;
}

std::optional<double> SiblingMerges::merged_us(const std::vector<NodeId>& nodes) {
  for (const NodeId id : nodes) {
    const auto at = siblings_.find(id);
    if (at == siblings_.end()) return std::nullopt;
    const bool knows_all = std::all_of(nodes.begin(), nodes.end(),
                                       [&](NodeId other) { return other == id || contains(at->second, other); });
    if (!knows_all) return std::nullopt;
  }
  const double before_us = start_.score().sum_us;
  std::optional<double> after_us;
  start_.tentatively([&] {
    if (merge(start_, nodes, nullptr)) after_us = start_.score().sum_us;
  });
  if (!after_us) return std::nullopt;
  double us = *after_us - before_us;
  for (const NodeId id : nodes) us += cost_.node_us(start_.graph(), id);
  return std::max(us, 0.0);
}

Rewritten SiblingMerges::apply(const std::vector<std::vector<NodeId>>& sets) const {
  auto candidate = std::make_shared<CandidateGraph>(start_);
  Rewritten result{candidate, {}};
  // Where a set does not merge to the end, what has merged stays: every step is a rewrite.
  for (const std::vector<NodeId>& set : sets) merge(*candidate, set, &result.steps);
  return result;
}

TaskGraph SiblingMerges::tasks() {
  return make_task_graph(start_.graph(), [&](const Graph& graph, NodeId id) {
    const double us = cost_.node_us(graph, id);
    return Task{id, us, context_.narrow_us(graph, id, us)};
  });
}

}  // namespace autograph

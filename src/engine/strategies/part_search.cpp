#include "engine/strategies/part_search.h"

#include <algorithm>

#include "optimize/search/equality/equality_search.h"

namespace autograph {
namespace {

// A part may cost as much more on the way to a gain as gamma allows the whole graph, up to this share of its own cost.
constexpr double kPartSlack = 0.25;
// Graphs of a part that are taken from the queue without a gain.
constexpr int64_t kMaxIdle = 500;

// All of both, best first; which of them make the whole is for its schedule to say.
void add_others(std::vector<Rewritten>& found, std::vector<Rewritten> others, double alpha) {
  for (Rewritten& other : others) {
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const Rewritten& one) {
      return one.candidate->score().hash == other.candidate->score().hash;
    });
    if (!is_known) found.push_back(std::move(other));
  }
  std::stable_sort(found.begin(), found.end(), [&](const Rewritten& a, const Rewritten& b) {
    return a.candidate->score().mixed_us(alpha) < b.candidate->score().mixed_us(alpha);
  });
}

}  // namespace

// Does it have the node of which a ledger is kept? What was tried there is noted only where it is searched.
bool PartSearch::is_asked_about(const PartGraph& part) {
  return context_.ledger() && context_.ledger()->concerns(part.graph, part.graph.nodes());
}

std::vector<IntervalOptions> PartSearch::run(const Graph& graph, const Partition& parts, const Limits& limits) {
  std::vector<IntervalOptions> result;
  std::vector<Hash128> keys;
  std::map<Hash128, std::shared_ptr<const PartGraph>> to_search;  // one of each kind
  PartCutter cutter(graph);
  for (const auto& [first, last] : parts.intervals) {
    if (context_.is_over(limits.cut_until)) return {};
    std::vector<NodeId> nodes;
    for (uint32_t p = first; p <= last; ++p) nodes.insert(nodes.end(), parts.parts[p].begin(), parts.parts[p].end());
    auto part = std::make_shared<const PartGraph>(cutter.cut(nodes));
    keys.push_back(part_key(*part));
    const bool is_asked = is_asked_about(*part);
    if (is_asked || !known_.contains(keys.back())) {
      auto& chosen = to_search[keys.back()];
      if (!chosen || (is_asked && !is_asked_about(*chosen))) chosen = part;
    }
    result.push_back({first, last, std::move(part), nullptr});
  }
  // In the order of the graph, whatever the keys are.
  size_t num_left = to_search.size();
  for (size_t n = 0; n < result.size(); ++n) {
    const auto chosen = to_search.find(keys[n]);
    if (chosen == to_search.end()) continue;
    const double now = context_.share_spent();
    known_[keys[n]] = search(chosen->second, limits, now + (limits.until - now) / static_cast<double>(num_left--));
    to_search.erase(chosen);
  }
  for (size_t n = 0; n < result.size(); ++n) result[n].found = known_.at(keys[n]);
  return result;
}

std::shared_ptr<const PartOptions> PartSearch::search(std::shared_ptr<const PartGraph> part, const Limits& limits,
                                                      double until) {
  const CandidateGraph start(part->graph, cost_);
  BacktrackingOptions how{
      .alpha = limits.alpha, .keep = static_cast<size_t>(context_.options().keep), .literal = context_.is_literal()};
  if (!context_.is_literal()) {
    how.slack_us = std::min(limits.slack_us, kPartSlack * start.score().mixed_us(limits.alpha));
    how.max_idle = kMaxIdle;
  }
  const bool use_both = context_.options().use_equality && !context_.is_literal();
  const double now = context_.share_spent();
  std::vector<Rewritten> found = context_.search(start, how, use_both ? (now + until) / 2 : until, limits.shown_us);
  if (use_both) {
    add_others(found, context_.search_by(search_equalities, start, how, until, limits.shown_us), limits.alpha);
  }
  // Once more with kernels measured, as far as there is time for that.
  for (Rewritten& one : found) one.candidate = std::make_shared<CandidateGraph>(one.candidate->graph(), cost_);
  return std::make_shared<const PartOptions>(PartOptions{std::move(part), std::move(found)});
}

}  // namespace autograph

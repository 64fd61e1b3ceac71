// taso: backtracking over the whole graph for the least sum of costs; what runs at the same time plays no part. The
// best graphs are measured: their kernels, for sums that are no estimates, and then each as a whole in turns.
#include <algorithm>

#include "engine/strategies/trials/incumbent.h"

namespace autograph {
namespace {

// Of the budget; the rest is for trials and for measuring the result against the plain plan.
constexpr double kSearchShare = 0.45;

// The graphs that a search found, cheapest first by measured kernels.
std::vector<Proposal> find(StrategyContext& context, const Graph& simplified) {
  FusedCost cost(context.cost());
  const CandidateGraph start(simplified, cost);
  context.report().partitions = 1;
  const auto keep = static_cast<size_t>(context.options().keep);
  std::vector<Proposal> proposals;
  for (Rewritten& found : context.search(start, {.alpha = 0, .keep = keep}, kSearchShare)) {
    if (found.steps.empty()) continue;
    proposals.push_back(context.propose(found.candidate->graph(), std::move(found.steps)));
    proposals.back().cost_us = context.score(proposals.back().simplified).sum_us;
  }
  std::stable_sort(proposals.begin(), proposals.end(),
                   [](const Proposal& a, const Proposal& b) { return a.cost_us < b.cost_us; });
  return proposals;
}

}  // namespace

Proposal run_taso(StrategyContext& context, const Graph& simplified) {
  Incumbent incumbent(context, context.propose(simplified));
  incumbent.try_tuning();
  try_taso(context, incumbent, simplified);
  incumbent.try_tuning_in_network();
  return incumbent.take();
}

std::vector<Proposal> try_taso(StrategyContext& context, Incumbent& incumbent, const Graph& simplified) {
  if (!context.options().use_rules) return {};
  std::vector<Proposal> found = find(context, simplified);
  std::erase_if(found, [&](const Proposal& proposal) { return !incumbent.is_new_graph(proposal); });
  for (const Proposal& proposal : found) {
    if (incumbent.has_time()) incumbent.try_candidate(proposal);
  }
  return found;
}

}  // namespace autograph

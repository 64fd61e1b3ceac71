// taso: backtracking over the whole graph for the least sum of costs; what runs at the same time plays no part.
#include "engine/strategies/strategy.h"

namespace autograph {
namespace {

// The rest of the budget is for measuring the result against the plain plan.
constexpr double kSearchShare = 0.8;

}  // namespace

Proposal run_taso(StrategyContext& context, const Graph& simplified) {
  if (!context.options().use_rules) return context.propose(simplified);
  FusedCost cost(context.cost());
  const CandidateGraph start(simplified, cost);
  context.report().partitions = 1;
  const std::vector<Rewritten> found = context.search(start, {.alpha = 0, .keep = 2}, kSearchShare);
  return context.propose(found.front().candidate->graph(), found.front().steps);
}

}  // namespace autograph

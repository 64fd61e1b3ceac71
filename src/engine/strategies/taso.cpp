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
  BacktrackingOptions options;
  options.alpha = 0;
  options.gamma = context.options().gamma;
  options.max_popped = context.options().max_candidates;
  options.keep = 2;
  options.should_stop = [&] { return context.is_over(kSearchShare); };
  options.on_candidate = [&](double best_us) { context.count_candidate("searching", best_us); };
  context.report().partitions = 1;
  context.set_measuring(false);
  const std::vector<Rewritten> found = backtrack(start, context.matcher(), options);
  context.set_measuring(true);
  return context.propose(found.front().candidate->graph(), found.front().steps);
}

}  // namespace autograph

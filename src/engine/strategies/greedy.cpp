// greedy: stages of all nodes that are ready.
#include "schedule/schedulers/greedy.h"

#include "engine/strategies/strategy.h"

namespace autograph {

Proposal run_greedy(StrategyContext& context, const Graph& simplified) {
  context.cost_plain(simplified);
  Proposal proposal = context.propose(simplified);
  if (const auto tasks = context.tasks(proposal.finished)) {
    proposal.schedule = schedule_greedy(*tasks, context.limits());
  }
  return proposal;
}

}  // namespace autograph

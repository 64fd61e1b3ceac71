// greedy: stages of all nodes that are ready.
#include "schedule/schedulers/greedy.h"

#include "engine/strategies/strategy.h"

namespace autograph {

Proposal run_greedy(StrategyContext& context, const Graph& simplified) {
  Proposal proposal = context.propose(simplified);
  proposal.schedule = schedule_greedy(context.tasks(proposal.finished), context.limits());
  return proposal;
}

}  // namespace autograph

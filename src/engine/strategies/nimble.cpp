// nimble: streams from a maximum matching on the minimum equivalent graph.
#include "schedule/nimble.h"

#include "engine/strategies/strategy.h"

namespace autograph {

Proposal run_nimble(StrategyContext& context, const Graph& simplified) {
  Proposal proposal = context.propose(simplified);
  proposal.schedule = schedule_nimble(context.tasks(proposal.finished), context.limits());
  return proposal;
}

Proposal run_taso_nimble(StrategyContext& context, const Graph& simplified) {
  Proposal proposal = run_taso(context, simplified);
  proposal.schedule = schedule_nimble(context.tasks(proposal.finished), context.limits());
  return proposal;
}

}  // namespace autograph

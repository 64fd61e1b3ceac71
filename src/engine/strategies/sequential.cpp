// sequential: the graph as the passes leave it, one node after the other, each on all threads.
#include "engine/strategies/strategy.h"

namespace autograph {

Proposal run_sequential(StrategyContext& context, const Graph& simplified) {
  context.cost_plain(simplified);
  return context.propose(simplified);
}

}  // namespace autograph

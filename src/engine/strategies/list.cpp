// list: the plain graph with the list scheduler, stages of several streams where these pay on the device.
#include "schedule/schedulers/list.h"

#include "engine/strategies/trials/champion.h"

namespace autograph {

Proposal run_list(StrategyContext& context, const Graph& simplified) {
  Champion champion(context, context.propose(simplified));
  champion.try_tuning();
  try_list(context, champion, champion.best());
  champion.try_tuning_in_network();
  return champion.take();
}

void try_list(StrategyContext& context, Champion& champion, const Proposal& of) {
  if (context.limits().max_streams < 2 || !champion.has_time()) return;
  champion.try_schedule(of, schedule_list(context.tasks(of.finished), context.limits()));
}

}  // namespace autograph

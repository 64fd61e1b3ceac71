// list: the plain graph with the list scheduler, stages of several streams where these pay on the device.
#include "schedule/schedulers/list.h"

#include "engine/strategies/trials/incumbent.h"

namespace autograph {

Proposal run_list(StrategyContext& context, const Graph& simplified) {
  Incumbent incumbent(context, context.propose(simplified));
  incumbent.try_tuning();
  try_list(context, incumbent, incumbent.best());
  incumbent.try_tuning_in_network();
  return incumbent.take();
}

void try_list(StrategyContext& context, Incumbent& incumbent, const Proposal& of) {
  if (context.limits().max_streams < 2 || !incumbent.has_time()) return;
  const std::optional<TaskGraph> tasks = context.tasks(of.finished);
  if (tasks) incumbent.try_schedule(of, schedule_list(*tasks, context.limits()));
}

}  // namespace autograph

// nimble: streams from a maximum matching on the minimum equivalent graph: for the whole graph as in the paper, and for
// the stages between tasks that nothing can run beside, where one wide stream may take less time than several.
#include "schedule/schedulers/nimble.h"

#include "engine/strategies/trials/incumbent.h"

namespace autograph {

Proposal run_nimble(StrategyContext& context, const Graph& simplified) {
  Incumbent incumbent(context, context.propose(simplified));
  incumbent.try_tuning();
  try_nimble(context, incumbent, incumbent.best());
  incumbent.try_tuning_in_network();
  return incumbent.take();
}

Proposal run_taso_nimble(StrategyContext& context, const Graph& simplified) {
  const Proposal plain = context.propose(simplified);
  Incumbent incumbent(context, plain);
  incumbent.try_tuning();
  // What is faster in sequence may leave less to run side by side: never worse than `nimble` alone, and before
  // rewriting takes the time.
  try_nimble(context, incumbent, plain);
  const std::vector<Proposal> found = try_taso(context, incumbent, simplified);
  const bool has_rewritten_best = !incumbent.best().steps.empty();
  if (!found.empty()) try_nimble(context, incumbent, has_rewritten_best ? incumbent.best() : found.front());
  // Where latencies are computed, trials cost nothing: what loses in turn may win on several streams.
  if (context.properties().has_exact_times) {
    for (const Proposal& proposal : found) try_nimble(context, incumbent, proposal);
  }
  incumbent.try_tuning_in_network();
  return incumbent.take();
}

void try_nimble(StrategyContext& context, Incumbent& incumbent, const Proposal& of) {
  if (context.limits().max_streams < 2 || !incumbent.has_time()) return;
  const Proposal base = of;  // which may be the best one: that changes
  const std::optional<TaskGraph> tasks = context.tasks(base.finished);
  if (!tasks) return;
  incumbent.try_schedule(base, schedule_nimble_stages(*tasks, context.limits()));
  incumbent.try_schedule(base, schedule_nimble(*tasks, context.limits()));
  try_list(context, incumbent, base);
}

}  // namespace autograph

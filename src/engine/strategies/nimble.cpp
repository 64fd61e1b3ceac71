// nimble: streams from a maximum matching on the minimum equivalent graph: for the whole graph as in the paper, and for
// the stages between tasks that nothing can run beside, where one wide stream may take less time than several.
#include "schedule/schedulers/nimble.h"

#include "engine/strategies/trials/champion.h"

namespace autograph {

Proposal run_nimble(StrategyContext& context, const Graph& simplified) {
  Champion champion(context, context.propose(simplified));
  champion.try_tuning();
  try_nimble(context, champion, champion.best());
  champion.try_tuning_in_network();
  return champion.take();
}

Proposal run_taso_nimble(StrategyContext& context, const Graph& simplified) {
  const Proposal plain = context.propose(simplified);
  Champion champion(context, plain);
  champion.try_tuning();
  // What is faster in sequence may leave less to run side by side: never worse than `nimble` alone, and before
  // rewriting takes the time.
  try_nimble(context, champion, plain);
  const std::vector<Proposal> found = challenge_with_taso(context, champion, simplified);
  const bool has_rewritten_best = !champion.best().steps.empty();
  if (!found.empty()) try_nimble(context, champion, has_rewritten_best ? champion.best() : found.front());
  // Where latencies are computed, trials cost nothing: what loses in turn may win on several streams.
  if (context.properties().has_exact_times) {
    for (const Proposal& proposal : found) try_nimble(context, champion, proposal);
  }
  champion.try_tuning_in_network();
  return champion.take();
}

void try_nimble(StrategyContext& context, Champion& champion, const Proposal& of) {
  if (context.limits().max_streams < 2 || !champion.has_time()) return;
  const Proposal base = of;  // which may be the best one: that changes
  const TaskGraph tasks = context.tasks(base.finished);
  champion.try_schedule(base, schedule_nimble_stages(tasks, context.limits()));
  champion.try_schedule(base, schedule_nimble(tasks, context.limits()));
  try_list(context, champion, base);
}

}  // namespace autograph

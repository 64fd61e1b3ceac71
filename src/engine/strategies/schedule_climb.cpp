#include "engine/strategies/schedule_climb.h"

#include <algorithm>

#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Graphs that leave the queue without a gain, at most: each is looked at as a whole as often as rules apply to it.
constexpr int64_t kMaxIdle = 40;

}  // namespace

std::vector<Rewritten> climb_by_schedule(StrategyContext& context, const Graph& graph, FusedCost& cost, double until,
                                         double shown_us) {
  ListMakespan makespan(context.limits());
  BacktrackingOptions how{.alpha = 0, .max_idle = kMaxIdle, .keep = static_cast<size_t>(context.options().keep)};
  how.whole_us = [&](const CandidateGraph& candidate) {
    const TaskCost task_cost = [&](const Graph& g, NodeId id) {
      return context.task_to_finish(g, id, candidate.node_us(id), candidate.node_load(id));
    };
    return makespan.us(without_free_tasks(make_task_graph(candidate.graph(), task_cost)).graph);
  };
  std::vector<Rewritten> found = context.search(CandidateGraph(graph, cost), how, until, shown_us);
  std::erase_if(found, [](const Rewritten& rewritten) { return rewritten.steps.empty(); });
  return found;
}

}  // namespace autograph

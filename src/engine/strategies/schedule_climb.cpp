#include "engine/strategies/schedule_climb.h"

#include <algorithm>

#include "schedule/schedulers/list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Graphs that leave the queue without a gain, at most: each is looked at as a whole as often as rules apply to it.
constexpr int64_t kMaxIdle = 40;
// Where the schedule is hardly longer than the longest way, only nodes on ways that are nearly as long are rewritten.
constexpr double kHardlyLonger = 0.9;
constexpr double kNearlyAsLong = 0.9;

// Those nodes, by number; empty: all.
std::vector<bool> nodes_on_long_ways(const TaskGraph& tasks, size_t capacity, double makespan_us) {
  const std::vector<double> to_end = upward_ranks(tasks);
  std::vector<double> from_start(tasks.size(), 0);
  for (TaskIndex task = 0; task < tasks.size(); ++task) {
    for (const TaskIndex source : tasks.predecessors[task]) {
      from_start[task] = std::max(from_start[task], from_start[source] + tasks.tasks[source].us);
    }
  }
  const double longest_us = to_end.empty() ? 0 : *std::max_element(to_end.begin(), to_end.end());
  if (longest_us < kHardlyLonger * makespan_us) return {};
  std::vector<bool> chosen(capacity, false);
  for (TaskIndex task = 0; task < tasks.size(); ++task) {
    chosen[tasks.tasks[task].node.index] = from_start[task] + to_end[task] >= kNearlyAsLong * longest_us;
  }
  return chosen;
}

}  // namespace

std::vector<Rewritten> climb_by_schedule(StrategyContext& context, const Graph& graph, FusedCost& cost, double until,
                                         double shown_us) {
  ListMakespan makespan(context.limits());
  BacktrackingOptions how{.alpha = 0, .max_idle = kMaxIdle, .keep = static_cast<size_t>(context.options().keep)};
  const auto tasks_of = [&](const CandidateGraph& candidate) {
    return make_task_graph(candidate.graph(), [&](const Graph& g, NodeId id) {
      return context.task_to_finish(g, id, candidate.node_us(id), candidate.node_load(id));
    });
  };
  how.whole_us = [&](const CandidateGraph& candidate) {
    return makespan.us(without_free_tasks(tasks_of(candidate)).graph);
  };
  if (context.has_loads(graph)) {
    how.choose_nodes = [&](const CandidateGraph& candidate, double us) {
      return nodes_on_long_ways(tasks_of(candidate), candidate.graph().node_capacity(), us);
    };
  }
  std::vector<Rewritten> found = context.search(CandidateGraph(graph, cost), how, until, shown_us);
  std::erase_if(found, [](const Rewritten& rewritten) { return rewritten.steps.empty(); });
  return found;
}

}  // namespace autograph

#include "schedule/schedulers/greedy.h"

#include <algorithm>

#include "schedule/schedulers/task_stages.h"

namespace autograph {

std::vector<TaskStreams> greedy_stages(const TaskGraph& graph, const StreamLimits& limits) {
  // The stage in which a task becomes ready: one after the last of what it reads.
  std::vector<size_t> depth(graph.size(), 0);
  std::vector<std::vector<std::vector<TaskIndex>>> ready;  // by stage: groups of one task
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    for (const TaskIndex source : graph.predecessors[task]) depth[task] = std::max(depth[task], depth[source] + 1);
    if (depth[task] == ready.size()) ready.emplace_back();
    ready[depth[task]].push_back({task});
  }
  std::vector<TaskStreams> stages;
  stages.reserve(ready.size());
  for (const auto& groups : ready) stages.push_back(balance(graph, groups, limits.max_streams));
  return stages;
}

Schedule schedule_greedy(const TaskGraph& graph, const StreamLimits& limits) {
  const WorkGraph work = without_free_tasks(graph);
  return to_schedule(graph, work, greedy_stages(work.graph, limits));
}

}  // namespace autograph

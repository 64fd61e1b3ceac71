// Wavefronts: every stage takes all tasks that are ready.
#pragma once

#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// Stages of all ready tasks, spread over at most `limits.max_streams` streams so that the longest (by `narrow_us`) is
/// short. A stage of one task has all threads. O(edges + tasks * log).
Schedule schedule_greedy(const TaskGraph& graph, const StreamLimits& limits);

/// As above, as stages of a graph without free tasks.
std::vector<TaskStreams> greedy_stages(const TaskGraph& graph, const StreamLimits& limits);

}  // namespace autograph

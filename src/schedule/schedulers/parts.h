// Cutting a task graph into parts that run one after the other.
#pragma once

#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// Parts of at most `max_part` tasks that hold every task once; each reads only itself and earlier parts. Cut after
/// tasks that nothing can run beside, where nothing is lost; parts that are still too large are put in the order
/// of their upward rank and cut where few values go on. Each part is sorted.
std::vector<std::vector<TaskIndex>> sequential_parts(const TaskGraph& graph, size_t max_part);

/// The tasks `part` (sorted) of a graph as a graph of their own, in the same order, with the edges among them.
TaskGraph subgraph(const TaskGraph& graph, const std::vector<TaskIndex>& part);

}  // namespace autograph

// Enumerates the possible last stages of a set of tasks, for dynamic programming over stages.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// A set of tasks of a part of at most 64.
using TaskSet = uint64_t;

/// Edges of a part as sets.
struct PartEdges {
  std::vector<TaskSet> successors;    ///< Of each task.
  std::vector<TaskSet> predecessors;  ///< Of each task.
};

/// The edges of a graph of at most 64 tasks.
PartEdges part_edges(const TaskGraph& graph);

/// Limits of an ending.
struct EndingLimits {
  int max_group = 3;   ///< Most tasks of a connected group.
  int max_groups = 8;  ///< Most groups.
};

/// Calls `visit` once with each ending of `set` (not empty, no edge to the rest of `set`) within the limits, until it
/// returns false; returns whether it never did.
bool for_each_ending(const PartEdges& edges, TaskSet set, const EndingLimits& limits,
                     const std::function<bool(TaskSet)>& visit);

/// The connected groups of a set, each sorted, in order of their first tasks.
std::vector<std::vector<TaskIndex>> connected_groups(const PartEdges& edges, TaskSet set);

}  // namespace autograph

// What all schedulers share: leaving out tasks that take no time, and making a schedule of stages of tasks.
//
// Views and weight-only nodes take no time, so no scheduler may spend a stream or a wait on them. They are contracted
// before scheduling (an edge goes past them) and put back beside what they read afterwards.
#pragma once

#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// The tasks of a task graph that take time.
struct WorkGraph {
  TaskGraph graph;                ///< These tasks alone, in the same order; an edge for each path through free tasks.
  std::vector<TaskIndex> origin;  ///< Of each of them: its index in the whole task graph.
};

/// Leaves out tasks whose `us` and `narrow_us` are 0.
WorkGraph without_free_tasks(const TaskGraph& graph);

/// The schedule of `stages`, which hold every task of `work` once and after what it reads. Free tasks are put into the
/// stream of the last task that they read, right after it, or before the first that reads them when they read none.
/// Neighbouring stages of one stream become one; without any stage of several streams the schedule is sequential.
Schedule to_schedule(const TaskGraph& graph, const WorkGraph& work, const std::vector<TaskStreams>& stages);

/// Microseconds of stages one after the other, each as estimate_stage_us() has it; where streams share the device, all
/// by one clock.
double estimate_us(const TaskGraph& graph, const std::vector<TaskStreams>& stages, const StreamLimits& limits);

/// Sum of `us`: what the tasks take one after the other.
double sequential_us(const TaskGraph& graph);

/// Longest sum of `us` from the start of each task to the end of the graph, itself included.
std::vector<double> upward_ranks(const TaskGraph& graph);

/// Spreads groups of tasks over at most `max_streams` streams, longest first, each to the stream with the least
/// `narrow_us` so far. Groups stay whole and keep their order; none may read what another makes.
TaskStreams balance(const TaskGraph& graph, const std::vector<std::vector<TaskIndex>>& groups, int max_streams);

}  // namespace autograph

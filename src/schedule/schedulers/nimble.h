// Streams as Nimble assigns them (Kwon et al., "Nimble: Lightweight and Parallel GPU Task Scheduling for Deep
// Learning", NeurIPS 2020): tasks that could run at the same time never share a stream, with as few waits as that
// allows.
//
// 1. Take the minimum equivalent graph E' of the tasks.
// 2. Match tasks with their readers along E', as many as possible; matched pairs make chains. Tasks of a chain depend
// on
//    each other, so a stream for each chain loses no concurrency, and every edge of E' inside a chain needs no wait:
//    |E'| - |M| waits remain, and no assignment that loses no concurrency has fewer.
// 3. Let a chain follow another one on its stream where the end of the one reaches the start of the other: fewer
//    streams, no new dependence and as many waits.
// 4. A device has only so many streams. Where more are left, tasks are taken by upward rank, and a stream of step 3
// goes,
//    at its first task, to the device stream on which that task ends first. This gives concurrency up.
#pragma once

#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// The steps' results, for a graph without free tasks.
struct StreamAssignment {
  std::vector<std::vector<TaskIndex>> chains;  ///< After step 2.
  TaskStreams streams;                         ///< After step 3.
  TaskStreams folded;                          ///< After step 4: at most `max_streams`.
  size_t num_edges = 0;                        ///< |E'|.
  size_t num_matched = 0;                      ///< |M|.

  /// Waits for tasks of other streams that steps 2 and 3 leave.
  size_t num_waits() const { return num_edges - num_matched; }
};

/// The closure takes the square of this in bits. Graphs with more tasks are cut where nothing can run beside a task.
inline constexpr size_t kMaxTasksOfStreams = 16384;

/// Takes tasks^2 / 8 bytes.
StreamAssignment assign_streams(const TaskGraph& graph, const StreamLimits& limits);

/// One stage of the folded streams.
Schedule schedule_nimble(const TaskGraph& graph, const StreamLimits& limits);

/// For devices whose kernels can use the whole device alone: the graph is cut at tasks that nothing can run beside,
/// which have all threads each, and what lies between two of them is one stage, of the folded streams where the
/// estimate says that they take less time, otherwise of one stream. Never longer than in sequence, by estimate_us().
Schedule schedule_nimble_stages(const TaskGraph& graph, const StreamLimits& limits);

/// As above, as stages of a graph without free tasks.
std::vector<TaskStreams> nimble_stages(const TaskGraph& graph, const StreamLimits& limits);

}  // namespace autograph

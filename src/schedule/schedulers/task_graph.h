// What schedulers see of a graph: tasks with costs and the dependences between them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "autograph/graph.h"
#include "autograph/schedule.h"
#include "optimize/cost/kernel_load.h"

namespace autograph {

/// Names a task of one task graph.
using TaskIndex = uint32_t;

/// A node that takes time. Views and nodes that depend on constants alone are tasks of no cost.
struct Task {
  NodeId node;
  double us = 0;         ///< On all threads of the run.
  double narrow_us = 0;  ///< On the threads of one stream; >= us on a CPU, equal where a stream has the whole device.
  KernelLoad load = {};  ///< Of a device that streams share.
};

/// A directed acyclic graph of tasks, in topological order. An edge stands for one or more values.
struct TaskGraph {
  std::vector<Task> tasks;
  std::vector<std::vector<TaskIndex>> successors;    ///< Sorted, without repetition.
  std::vector<std::vector<TaskIndex>> predecessors;  ///< Sorted, without repetition.

  size_t size() const { return tasks.size(); }
  /// Do streams share the device? Then tasks beside each other slow each other down, as their loads say.
  bool is_shared() const {
    return std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.load.work_us > 0; });
  }
};

/// Cost of a node on all threads and on those of one stream.
using TaskCost = std::function<Task(const Graph&, NodeId)>;

/// One task for each live node of `graph`, with the costs that `cost` tells. O(nodes + edges).
TaskGraph make_task_graph(const Graph& graph, const TaskCost& cost);

/// What the streams of a device can do.
struct StreamLimits {
  int max_streams = 2;  ///< At most so many streams at once.
  double sync_us = 1;   ///< What it takes to wait for another stream, or for a stage to begin.
};

/// Tasks that run side by side: one stage. Each stream runs its tasks in order.
using TaskStreams = std::vector<std::vector<TaskIndex>>;

/// Microseconds of one stage by itself. By estimate or by measurement.
using StageCost = std::function<double(const TaskStreams& streams)>;

/// Makespan of a stage from the costs of its tasks. One stream: the sum of `us`. Several: `sync_us` to begin, then
/// every task takes `narrow_us`, or what its load takes beside the others where streams share the device, and starts
/// when its stream is free and what it reads is there, `sync_us` later when that comes from another stream. Throws
/// InternalError when the streams wait for each other in a circle.
double estimate_stage_us(const TaskGraph& graph, const TaskStreams& streams, const StreamLimits& limits);

}  // namespace autograph

#include "schedule/schedulers/task_graph.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "base/check.h"
#include "schedule/schedulers/stream_clock.h"
#include "schedule/walk_streams.h"

namespace autograph {
namespace {

constexpr TaskIndex kNoTask = std::numeric_limits<TaskIndex>::max();

void sort_unique(std::vector<TaskIndex>& tasks) {
  std::sort(tasks.begin(), tasks.end());
  tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
}

double sequential_us(const TaskGraph& graph, const TaskStreams& streams) {
  double us = 0;
  for (const auto& stream : streams) {
    for (const TaskIndex task : stream) us += graph.tasks[task].us;
  }
  return us;
}

// Plays the streams of one stage until none can go on. Knows of the tasks of the stage alone: a graph has as many
// stages as it likes.
class StageClock {
 public:
  StageClock(const TaskGraph& graph, const TaskStreams& streams, double sync_us)
      : graph_(graph), streams_(streams), sync_us_(sync_us) {
    for (size_t s = 0; s < streams.size(); ++s) {
      for (const TaskIndex task : streams[s]) places_[task] = {s, -1};
    }
  }

  double run() {
    std::vector<double> free_us(streams_.size(), sync_us_);
    const bool is_done =
        walk_streams(streams_, [&](TaskIndex task, size_t stream) { return start(task, free_us[stream]); });
    AG_CHECK(is_done, "stage: its {} streams wait for each other in a circle", streams_.size());
    return *std::max_element(free_us.begin(), free_us.end());
  }

 private:
  // False while something that the task reads has not run.
  bool start(TaskIndex task, double& free_us) {
    double start_us = free_us;
    Place& here = places_.at(task);
    for (const TaskIndex source : graph_.predecessors[task]) {
      const auto there = places_.find(source);
      if (there == places_.end()) continue;  // an earlier stage
      if (there->second.end_us < 0) return false;
      const bool is_near = there->second.stream == here.stream;
      start_us = std::max(start_us, there->second.end_us + (is_near ? 0 : sync_us_));
    }
    free_us = here.end_us = start_us + graph_.tasks[task].narrow_us;
    return true;
  }

  struct Place {
    size_t stream = 0;
    double end_us = -1;  // less than 0: not yet run
  };

  const TaskGraph& graph_;
  const TaskStreams& streams_;
  double sync_us_;
  std::unordered_map<TaskIndex, Place> places_;  // of the tasks of the stage
};

// The same where streams share the device.
double shared_us(const TaskGraph& graph, const TaskStreams& streams, double sync_us) {
  constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
  std::unordered_map<TaskIndex, size_t> number_of;  // of the tasks of the stage
  for (const auto& stream : streams) {
    for (const TaskIndex task : stream) number_of[task] = kNowhere;
  }
  std::vector<ClockKernel> kernels;
  const bool is_done = walk_streams(streams, [&](TaskIndex task, size_t stream) {
    ClockKernel kernel = clock_kernel(graph.tasks[task].load, stream);
    for (const TaskIndex source : graph.predecessors[task]) {
      const auto there = number_of.find(source);
      if (there == number_of.end()) continue;  // an earlier stage
      if (there->second == kNowhere) return false;
      if (kernels[there->second].stream != stream) kernel.waits.push_back(there->second);
    }
    number_of[task] = kernels.size();
    kernels.push_back(std::move(kernel));
    return true;
  });
  AG_CHECK(is_done, "stage: its {} streams wait for each other in a circle", streams.size());
  const std::vector<double> end_us = run_clock(kernels, sync_us).end_us;
  return sync_us + *std::max_element(end_us.begin(), end_us.end());
}

}  // namespace

TaskGraph make_task_graph(const Graph& graph, const TaskCost& cost) {
  TaskGraph result;
  std::vector<TaskIndex> task_of(graph.node_capacity(), kNoTask);
  for (const NodeId id : graph.topological_order()) {
    const auto task = static_cast<TaskIndex>(result.tasks.size());
    task_of[id.index] = task;
    result.tasks.push_back(cost(graph, id));
    result.tasks.back().node = id;
    std::vector<TaskIndex> sources;
    for (const ValueId input : graph.node(id).inputs()) {
      const NodeId producer = input.is_valid() ? graph.value(input).producer() : NodeId{};
      if (producer.is_valid()) sources.push_back(task_of[producer.index]);
    }
    sort_unique(sources);
    result.successors.emplace_back();
    for (const TaskIndex source : sources) result.successors[source].push_back(task);
    result.predecessors.push_back(std::move(sources));
  }
  return result;
}

double estimate_stage_us(const TaskGraph& graph, const TaskStreams& streams, const StreamLimits& limits) {
  const auto width = std::count_if(streams.begin(), streams.end(), [](const auto& stream) { return !stream.empty(); });
  if (width <= 1) return sequential_us(graph, streams);
  if (graph.is_shared()) return shared_us(graph, streams, limits.sync_us);
  return StageClock(graph, streams, limits.sync_us).run();
}

}  // namespace autograph

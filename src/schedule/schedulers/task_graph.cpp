#include "schedule/schedulers/task_graph.h"

#include <algorithm>
#include <limits>

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

// Plays the streams of one stage until none can go on.
class StageClock {
 public:
  StageClock(const TaskGraph& graph, const TaskStreams& streams, double sync_us)
      : graph_(graph), streams_(streams), sync_us_(sync_us), stream_of_(graph.size(), -1), end_us_(graph.size(), -1) {
    for (size_t s = 0; s < streams.size(); ++s) {
      for (const TaskIndex task : streams[s]) stream_of_[task] = static_cast<int>(s);
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
    for (const TaskIndex source : graph_.predecessors[task]) {
      if (stream_of_[source] < 0) continue;  // an earlier stage
      if (end_us_[source] < 0) return false;
      const bool is_near = stream_of_[source] == stream_of_[task];
      start_us = std::max(start_us, end_us_[source] + (is_near ? 0 : sync_us_));
    }
    free_us = end_us_[task] = start_us + graph_.tasks[task].narrow_us;
    return true;
  }

  const TaskGraph& graph_;
  const TaskStreams& streams_;
  double sync_us_;
  std::vector<int> stream_of_;  // -1: not in this stage
  std::vector<double> end_us_;  // -1: not yet run
};

// The same where streams share the device.
double shared_us(const TaskGraph& graph, const TaskStreams& streams, double sync_us) {
  constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
  std::vector<uint8_t> is_here(graph.size(), 0);
  for (const auto& stream : streams) {
    for (const TaskIndex task : stream) is_here[task] = 1;
  }
  std::vector<size_t> number_of(graph.size(), kNowhere);
  std::vector<ClockKernel> kernels;
  const bool is_done = walk_streams(streams, [&](TaskIndex task, size_t stream) {
    ClockKernel kernel = clock_kernel(graph.tasks[task].load, stream);
    for (const TaskIndex source : graph.predecessors[task]) {
      if (!is_here[source]) continue;  // an earlier stage
      if (number_of[source] == kNowhere) return false;
      if (kernels[number_of[source]].stream != stream) kernel.waits.push_back(number_of[source]);
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

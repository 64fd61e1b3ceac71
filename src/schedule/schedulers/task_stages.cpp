#include "schedule/schedulers/task_stages.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "schedule/schedulers/stream_clock.h"
#include "schedule/walk_streams.h"

namespace autograph {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();

bool is_free(const Task& task) { return task.us == 0 && task.narrow_us == 0; }

// Where a task stands in a schedule, and the order in which tasks are started.
struct Launch {
  TaskIndex task;  // in the whole graph
  size_t stage;
  size_t stream;
};

// An order of all tasks of the stages that every stream's order is part of.
class LaunchOrder {
 public:
  LaunchOrder(const WorkGraph& work, const std::vector<TaskStreams>& stages)
      : work_(work), done_(work.graph.size(), 0) {
    for (size_t stage = 0; stage < stages.size(); ++stage) add_stage(stages[stage], stage);
    AG_CHECK(launches_.size() == work.graph.size(), "stages: expected {} tasks, got {}", work.graph.size(),
             launches_.size());
  }
  std::vector<Launch> take() { return std::move(launches_); }

 private:
  void add_stage(const TaskStreams& streams, size_t stage) {
    const bool is_done = walk_streams(streams, [&](TaskIndex task, size_t stream) {
      if (!is_ready(task)) return false;
      done_[task] = 1;
      launches_.push_back({work_.origin[task], stage, stream});
      return true;
    });
    AG_CHECK(is_done, "stages: the streams of stage {} wait for what never comes", stage);
  }

  bool is_ready(TaskIndex task) const {
    const auto& sources = work_.graph.predecessors[task];
    return std::all_of(sources.begin(), sources.end(), [&](TaskIndex source) { return done_[source]; });
  }

  const WorkGraph& work_;
  std::vector<uint8_t> done_;
  std::vector<Launch> launches_;
};

// Which free tasks come right before and right after each launch.
struct FreePlaces {
  std::vector<std::vector<TaskIndex>> before;
  std::vector<std::vector<TaskIndex>> after;
};

FreePlaces place_free_tasks(const TaskGraph& graph, const std::vector<Launch>& launches) {
  FreePlaces places{std::vector<std::vector<TaskIndex>>(launches.size()),
                    std::vector<std::vector<TaskIndex>>(launches.size())};
  std::vector<size_t> position(graph.size(), kNowhere);
  for (size_t i = 0; i < launches.size(); ++i) position[launches[i].task] = i;
  std::vector<TaskIndex> rootless;
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    if (position[task] != kNowhere) continue;
    for (const TaskIndex source : graph.predecessors[task]) {
      if (position[source] == kNowhere) continue;
      position[task] = position[task] == kNowhere ? position[source] : std::max(position[task], position[source]);
    }
    if (position[task] == kNowhere) {
      rootless.push_back(task);
    } else {
      places.after[position[task]].push_back(task);
    }
  }
  for (auto task = rootless.rbegin(); task != rootless.rend(); ++task) {
    for (const TaskIndex reader : graph.successors[*task])
      position[*task] = std::min(position[*task], position[reader]);
    if (position[*task] == kNowhere) position[*task] = 0;
  }
  for (const TaskIndex task : rootless) places.before[position[task]].push_back(task);
  return places;
}

// Appends a stage of one stream to the one before it when that has one stream too.
void add_stage(Schedule& schedule, Stage stage) {
  std::erase_if(stage.streams, [](const auto& stream) { return stream.empty(); });
  if (stage.streams.empty()) return;
  if (stage.streams.size() == 1 && !schedule.stages.empty() && schedule.stages.back().streams.size() == 1) {
    auto& last = schedule.stages.back().streams[0];
    last.insert(last.end(), stage.streams[0].begin(), stage.streams[0].end());
  } else {
    schedule.stages.push_back(std::move(stage));
  }
}

// All stages by one clock where streams share the device: on each stream a stage begins when the one before it has
// ended on all others.
double shared_us(const TaskGraph& graph, const std::vector<TaskStreams>& stages, double sync_us) {
  std::vector<size_t> number_of(graph.size(), kNowhere);
  std::vector<ClockKernel> kernels;
  std::vector<size_t> last_before;  // of each stream of the stage before
  for (const TaskStreams& streams : stages) {
    const size_t first = kernels.size();
    std::vector<size_t> last(streams.size(), kNowhere);
    const bool is_done = walk_streams(streams, [&](TaskIndex task, size_t stream) {
      ClockKernel kernel = clock_kernel(graph.tasks[task].load, stream);
      const auto wait_for = [&](size_t number) {
        if (kernels[number].stream != stream) kernel.waits.push_back(number);
      };
      for (const TaskIndex source : graph.predecessors[task]) {
        if (number_of[source] == kNowhere) return false;
        if (number_of[source] >= first) wait_for(number_of[source]);
      }
      if (last[stream] == kNowhere) std::for_each(last_before.begin(), last_before.end(), wait_for);
      last[stream] = number_of[task] = kernels.size();
      kernels.push_back(std::move(kernel));
      return true;
    });
    AG_CHECK(is_done, "stage: its {} streams wait for each other in a circle", streams.size());
    std::erase(last, kNowhere);
    if (!last.empty()) last_before = std::move(last);
  }
  if (kernels.empty()) return 0;
  const std::vector<double> end_us = run_clock(kernels, sync_us).end_us;
  return *std::max_element(end_us.begin(), end_us.end());
}

}  // namespace

WorkGraph without_free_tasks(const TaskGraph& graph) {
  WorkGraph work;
  // What each task means to its readers: itself, or, of a free task, the work that it waits for.
  std::vector<std::vector<TaskIndex>> meaning(graph.size());
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    std::vector<TaskIndex> sources;
    for (const TaskIndex source : graph.predecessors[task]) {
      std::vector<TaskIndex> merged;
      std::set_union(sources.begin(), sources.end(), meaning[source].begin(), meaning[source].end(),
                     std::back_inserter(merged));
      sources = std::move(merged);
    }
    if (is_free(graph.tasks[task])) {
      meaning[task] = std::move(sources);
      continue;
    }
    const auto index = static_cast<TaskIndex>(work.origin.size());
    meaning[task] = {index};
    work.origin.push_back(task);
    work.graph.tasks.push_back(graph.tasks[task]);
    work.graph.successors.emplace_back();
    for (const TaskIndex source : sources) work.graph.successors[source].push_back(index);
    work.graph.predecessors.push_back(std::move(sources));
  }
  return work;
}

Schedule to_schedule(const TaskGraph& graph, const WorkGraph& work, const std::vector<TaskStreams>& stages) {
  const std::vector<Launch> launches = LaunchOrder(work, stages).take();
  Schedule schedule;
  if (launches.empty()) return schedule;
  const FreePlaces places = place_free_tasks(graph, launches);
  std::vector<Stage> filled(stages.size());
  for (size_t i = 0; i < launches.size(); ++i) {
    auto& streams = filled[launches[i].stage].streams;
    streams.resize(stages[launches[i].stage].size());
    auto& stream = streams[launches[i].stream];
    for (const TaskIndex task : places.before[i]) stream.push_back(graph.tasks[task].node);
    stream.push_back(graph.tasks[launches[i].task].node);
    for (const TaskIndex task : places.after[i]) stream.push_back(graph.tasks[task].node);
  }
  for (Stage& stage : filled) add_stage(schedule, std::move(stage));
  return schedule.width() > 1 ? schedule : Schedule();
}

double estimate_us(const TaskGraph& graph, const std::vector<TaskStreams>& stages, const StreamLimits& limits) {
  if (graph.is_shared()) return shared_us(graph, stages, limits.sync_us);
  double us = 0;
  for (const TaskStreams& streams : stages) us += estimate_stage_us(graph, streams, limits);
  return us;
}

double sequential_us(const TaskGraph& graph) {
  return std::accumulate(graph.tasks.begin(), graph.tasks.end(), 0.0,
                         [](double sum, const Task& task) { return sum + task.us; });
}

std::vector<double> upward_ranks(const TaskGraph& graph) {
  std::vector<double> rank(graph.size(), 0);
  for (auto task = static_cast<TaskIndex>(graph.size()); task-- > 0;) {
    for (const TaskIndex reader : graph.successors[task]) rank[task] = std::max(rank[task], rank[reader]);
    rank[task] += graph.tasks[task].us;
  }
  return rank;
}

TaskStreams balance(const TaskGraph& graph, const std::vector<std::vector<TaskIndex>>& groups, int max_streams) {
  std::vector<double> group_us(groups.size(), 0);
  for (size_t g = 0; g < groups.size(); ++g) {
    for (const TaskIndex task : groups[g]) group_us[g] += graph.tasks[task].narrow_us;
  }
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return group_us[a] > group_us[b]; });
  TaskStreams streams(std::min(groups.size(), static_cast<size_t>(std::max(max_streams, 1))));
  std::vector<double> stream_us(streams.size(), 0);
  for (const size_t g : order) {
    const auto least = static_cast<size_t>(std::min_element(stream_us.begin(), stream_us.end()) - stream_us.begin());
    stream_us[least] += group_us[g];
    streams[least].insert(streams[least].end(), groups[g].begin(), groups[g].end());
  }
  return streams;
}

}  // namespace autograph

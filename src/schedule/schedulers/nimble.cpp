#include "schedule/schedulers/nimble.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedule/schedulers/matching.h"
#include "schedule/schedulers/parts.h"
#include "schedule/schedulers/reachability.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Lists of things that follow each other, from the follower of each (kUnmatched: none); in order of their first thing.
std::vector<std::vector<uint32_t>> link(const std::vector<uint32_t>& follower) {
  std::vector<uint8_t> is_first(follower.size(), 1);
  for (const uint32_t next : follower) {
    if (next != kUnmatched) is_first[next] = 0;
  }
  std::vector<std::vector<uint32_t>> lists;
  for (uint32_t first = 0; first < follower.size(); ++first) {
    if (!is_first[first]) continue;
    lists.emplace_back();
    for (uint32_t at = first; at != kUnmatched; at = follower[at]) lists.back().push_back(at);
  }
  return lists;
}

TaskStreams reuse_streams(const std::vector<std::vector<TaskIndex>>& chains, const Reachability& reachability) {
  std::vector<std::vector<uint32_t>> may_follow(chains.size());
  for (uint32_t a = 0; a < chains.size(); ++a) {
    for (uint32_t b = 0; b < chains.size(); ++b) {
      if (reachability.reaches(chains[a].back(), chains[b].front())) may_follow[a].push_back(b);
    }
  }
  TaskStreams streams;
  for (const auto& list : link(maximum_matching(may_follow, chains.size()))) {
    streams.emplace_back();
    for (const uint32_t chain : list) {
      streams.back().insert(streams.back().end(), chains[chain].begin(), chains[chain].end());
    }
  }
  return streams;
}

// Step 4. A task is placed after everything with a higher rank, so every stream's order is part of one topological
// order.
class Folding {
 public:
  Folding(const TaskGraph& graph, const TaskStreams& streams, const StreamLimits& limits)
      : graph_(graph),
        sync_us_(limits.sync_us),
        folded_(static_cast<size_t>(std::max(limits.max_streams, 1))),
        free_us_(folded_.size(), 0),
        target_(streams.size(), kUnmatched),
        stream_of_(graph.size()),
        end_us_(graph.size(), 0),
        device_stream_of_(graph.size(), kUnmatched) {
    for (uint32_t s = 0; s < streams.size(); ++s) {
      for (const TaskIndex task : streams[s]) stream_of_[task] = s;
    }
  }

  TaskStreams run() {
    const std::vector<double> rank = upward_ranks(graph_);
    std::vector<TaskIndex> order(graph_.size());
    std::iota(order.begin(), order.end(), 0);
    // A task's rank exceeds that of its readers, as no task is free of cost; the index breaks ties topologically.
    std::stable_sort(order.begin(), order.end(), [&](TaskIndex a, TaskIndex b) { return rank[a] > rank[b]; });
    for (const TaskIndex task : order) place(task);
    return std::move(folded_);
  }

 private:
  void place(TaskIndex task) {
    uint32_t& target = target_[stream_of_[task]];
    if (target == kUnmatched) {
      target = 0;
      for (uint32_t s = 1; s < folded_.size(); ++s) {
        if (start_us(task, s) < start_us(task, target)) target = s;
      }
    }
    end_us_[task] = start_us(task, target) + graph_.tasks[task].narrow_us;
    free_us_[target] = end_us_[task];
    device_stream_of_[task] = target;
    folded_[target].push_back(task);
  }

  double start_us(TaskIndex task, uint32_t target) const {
    double start = free_us_[target];
    for (const TaskIndex source : graph_.predecessors[task]) {
      start = std::max(start, end_us_[source] + (device_stream_of_[source] == target ? 0 : sync_us_));
    }
    return start;
  }

  const TaskGraph& graph_;
  double sync_us_;
  TaskStreams folded_;
  std::vector<double> free_us_;             // of each device stream
  std::vector<uint32_t> target_;            // of each stream: its device stream
  std::vector<uint32_t> stream_of_;         // of each task
  std::vector<double> end_us_;              // of each task
  std::vector<uint32_t> device_stream_of_;  // of each task
};

// What lies between two cuts, as one stage.
TaskStreams between_cuts(const TaskGraph& graph, const std::vector<TaskIndex>& tasks, const StreamLimits& limits) {
  if (tasks.size() > kMaxTasksOfStreams) return {tasks};
  const TaskGraph part = subgraph(graph, tasks);
  TaskStreams streams = assign_streams(part, limits).folded;
  std::erase_if(streams, [](const auto& stream) { return stream.empty(); });
  if (streams.size() < 2 || estimate_stage_us(part, streams, limits) >= sequential_us(part)) return {tasks};
  for (auto& stream : streams) {
    for (TaskIndex& task : stream) task = tasks[task];
  }
  return streams;
}

}  // namespace

StreamAssignment assign_streams(const TaskGraph& graph, const StreamLimits& limits) {
  StreamAssignment result;
  const Reachability reachability(graph);
  std::vector<std::vector<uint32_t>> readers(graph.size());
  for (const auto& [from, to] : reachability.minimum_edges()) {
    readers[from].push_back(to);
    ++result.num_edges;
  }
  result.chains = link(maximum_matching(readers, graph.size()));
  result.num_matched = graph.size() - result.chains.size();
  result.streams = reuse_streams(result.chains, reachability);
  const bool fits = result.streams.size() <= static_cast<size_t>(std::max(limits.max_streams, 1));
  result.folded = fits ? result.streams : Folding(graph, result.streams, limits).run();
  return result;
}

Schedule schedule_nimble(const TaskGraph& graph, const StreamLimits& limits) {
  const WorkGraph work = without_free_tasks(graph);
  if (work.graph.size() > kMaxTasksOfStreams) return to_schedule(graph, work, nimble_stages(work.graph, limits));
  return to_schedule(graph, work, {assign_streams(work.graph, limits).folded});
}

std::vector<TaskStreams> nimble_stages(const TaskGraph& graph, const StreamLimits& limits) {
  const std::vector<bool> is_cut = cut_points(graph);
  std::vector<TaskStreams> stages;
  std::vector<TaskIndex> between;
  const auto end_stage = [&] {
    if (!between.empty()) stages.push_back(between_cuts(graph, between, limits));
    between.clear();
  };
  // What must run before a cut comes before it in the order of the tasks, and everything else behind it.
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    if (!is_cut[task]) {
      between.push_back(task);
      continue;
    }
    end_stage();
    stages.push_back({{task}});
  }
  end_stage();
  return stages;
}

Schedule schedule_nimble_stages(const TaskGraph& graph, const StreamLimits& limits) {
  const WorkGraph work = without_free_tasks(graph);
  return to_schedule(graph, work, nimble_stages(work.graph, limits));
}

}  // namespace autograph

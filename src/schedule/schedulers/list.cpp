#include "schedule/schedulers/list.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "schedule/schedulers/greedy.h"
#include "schedule/schedulers/shared_list.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Longer stages of several streams take too long to look for, thousands of times.
constexpr ListOptions kQuick = {.max_run = 64};

// Tasks put one after the other on the stream on which each ends first.
class Spread {
 public:
  Spread(const TaskGraph& graph, const StreamLimits& limits)
      : graph_(graph),
        sync_us_(limits.sync_us),
        free_us_(static_cast<size_t>(limits.max_streams)),
        end_us_(graph.size()),
        stream_of_(graph.size()),
        run_of_(graph.size(), 0) {}

  /// Forgets all tasks.
  void begin() {
    ++run_;
    std::fill(free_us_.begin(), free_us_.end(), sync_us_);
    num_used_ = 0;
    last_us_ = 0;
  }
  /// Adds a task; what it reads must be there, or before the run. Returns its stream.
  size_t add(TaskIndex task) {
    size_t best = 0;
    double best_us = std::numeric_limits<double>::infinity();
    // An unused stream is as good as the next, so one of them is enough.
    for (size_t s = 0; s < std::min(free_us_.size(), num_used_ + 1); ++s) {
      const double us = start_us(task, s);
      if (us >= best_us) continue;
      best_us = us;
      best = s;
    }
    num_used_ = std::max(num_used_, best + 1);
    free_us_[best] = end_us_[task] = best_us + graph_.tasks[task].narrow_us;
    stream_of_[task] = static_cast<uint32_t>(best);
    run_of_[task] = run_;
    last_us_ = std::max(last_us_, end_us_[task]);
    return best;
  }
  /// Streams with tasks.
  size_t width() const { return num_used_; }
  /// When the last task ends, as estimate_stage_us() tells for several streams.
  double us() const { return last_us_; }

 private:
  double start_us(TaskIndex task, size_t stream) const {
    double start = free_us_[stream];
    for (const TaskIndex source : graph_.predecessors[task]) {
      if (run_of_[source] != run_) continue;
      start = std::max(start, end_us_[source] + (stream_of_[source] == stream ? 0 : sync_us_));
    }
    return start;
  }

  const TaskGraph& graph_;
  double sync_us_;
  std::vector<double> free_us_;  // of each stream
  std::vector<double> end_us_;   // of each task, as the next two
  std::vector<uint32_t> stream_of_;
  std::vector<uint64_t> run_of_;  // tells whether it is in the present run
  uint64_t run_ = 0;
  size_t num_used_ = 0;
  double last_us_ = 0;
};

// The order cut into runs.
struct Cut {
  double us = 0;
  std::vector<size_t> ends;   // where each run ends
  std::vector<bool> is_wide;  // one stream
};

// cost[j] = min(cost[j-1] + us of task j alone, min over i < j of cost[i] + streams of tasks i..j).
Cut best_cut(const TaskGraph& graph, const std::vector<TaskIndex>& order, const StreamLimits& limits,
             const ListOptions& options) {
  const size_t size = order.size();
  std::vector<double> cost(size + 1, std::numeric_limits<double>::infinity());
  std::vector<size_t> from(size + 1, 0);
  std::vector<bool> is_wide(size + 1, false);
  cost[0] = 0;
  Spread spread(graph, limits);
  for (size_t i = 0; i < size; ++i) {
    spread.begin();
    double alone_us = 0;
    for (size_t j = i; j < std::min(size, i + options.max_run); ++j) {
      const Task& task = graph.tasks[order[j]];
      alone_us += task.us;
      spread.add(order[j]);
      if (j == i && cost[i] + task.us <= cost[j + 1]) {
        cost[j + 1] = cost[i] + task.us;
        from[j + 1] = i;
        is_wide[j + 1] = true;
      }
      if (spread.width() < 2 || spread.us() > alone_us * (1 - options.min_gain)) continue;
      if (cost[i] + spread.us() < cost[j + 1]) {
        cost[j + 1] = cost[i] + spread.us();
        from[j + 1] = i;
        is_wide[j + 1] = false;
      }
    }
  }
  Cut cut;
  cut.us = cost[size];
  for (size_t end = size; end > 0; end = from[end]) {
    cut.ends.push_back(end);
    cut.is_wide.push_back(is_wide[end]);
  }
  std::reverse(cut.ends.begin(), cut.ends.end());
  std::reverse(cut.is_wide.begin(), cut.is_wide.end());
  return cut;
}

std::vector<TaskStreams> stages_of(const TaskGraph& graph, const std::vector<TaskIndex>& order, const Cut& cut,
                                   const StreamLimits& limits) {
  std::vector<TaskStreams> stages;
  Spread spread(graph, limits);
  size_t begin = 0;
  bool is_open = false;  // the last stage takes more wide tasks
  for (size_t run = 0; run < cut.ends.size(); ++run) {
    if (!cut.is_wide[run] || !is_open) stages.emplace_back(cut.is_wide[run] ? 1 : limits.max_streams);
    is_open = cut.is_wide[run];
    spread.begin();
    for (; begin < cut.ends[run]; ++begin) {
      const size_t stream = is_open ? 0 : spread.add(order[begin]);
      stages.back()[stream].push_back(order[begin]);
    }
  }
  for (TaskStreams& streams : stages) {
    std::erase_if(streams, [](const auto& stream) { return stream.empty(); });
    // As the graph has them: neighbours there often share data that is still in the cache.
    if (streams.size() == 1) std::sort(streams[0].begin(), streams[0].end());
  }
  return stages;
}

std::vector<std::vector<TaskIndex>> topological_orders(const TaskGraph& graph) {
  std::vector<TaskIndex> given(graph.size());
  std::iota(given.begin(), given.end(), 0);
  std::vector<TaskIndex> by_rank = given;
  const std::vector<double> rank = upward_ranks(graph);
  std::stable_sort(by_rank.begin(), by_rank.end(), [&](TaskIndex a, TaskIndex b) { return rank[a] > rank[b]; });
  std::vector<TaskIndex> by_wave;
  for (const TaskStreams& wave : greedy_stages(graph, {.max_streams = 1})) {
    by_wave.insert(by_wave.end(), wave[0].begin(), wave[0].end());
  }
  return {given, by_rank, by_wave};
}

}  // namespace

std::vector<TaskStreams> list_stages(const TaskGraph& graph, const StreamLimits& limits, const ListOptions& options) {
  StreamLimits usable = limits;
  usable.max_streams = std::max(limits.max_streams, 1);
  if (graph.is_shared()) return {shared_list_streams(graph, usable)};
  std::vector<TaskStreams> best;
  double best_us = std::numeric_limits<double>::infinity();
  for (const auto& order : topological_orders(graph)) {
    const Cut cut = best_cut(graph, order, usable, options);
    if (cut.us >= best_us) continue;
    best_us = cut.us;
    best = stages_of(graph, order, cut, usable);
  }
  return best;
}

Schedule schedule_list(const TaskGraph& graph, const StreamLimits& limits, const ListOptions& options) {
  const WorkGraph work = without_free_tasks(graph);
  return to_schedule(graph, work, list_stages(work.graph, limits, options));
}

double ListMakespan::us(const TaskGraph& work) {
  if (!work.is_shared()) return estimate_us(work, list_stages(work, limits_, kQuick), limits_);
  if (is_first_) {
    // A graph whose nodes all wait for each other has no use for streams; what is made of it may have.
    const SharedListChoice all_streams{static_cast<size_t>(std::max(limits_.max_streams, 1)), 1};
    choice_ = choose_shared_list(work, limits_).value_or(all_streams);
  }
  is_first_ = false;
  return std::min(sequential_us(work),
                  estimate_us(work, {shared_list_streams(work, choice_, limits_.sync_us)}, limits_));
}

}  // namespace autograph

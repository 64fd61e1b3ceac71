#include "schedule/schedulers/shared_list.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "base/check.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What running tasks may ask for together, in devices: all of it starts early, at the price of the first ones' speed.
constexpr double kRooms[] = {1, 1.5, kInfinity};

class SharedList {
 public:
  SharedList(const TaskGraph& graph, const SharedListChoice& choice, double sync_us)
      : graph_(graph),
        sync_us_(sync_us),
        room_(choice.room),
        rank_(upward_ranks(graph)),
        end_us_(graph.size(), 0),
        stream_of_(graph.size(), 0),
        missing_(graph.size()),
        running_(choice.num_streams),
        streams_(choice.num_streams) {
    for (TaskIndex task = 0; task < graph.size(); ++task) {
      missing_[task] = graph.predecessors[task].size();
      if (missing_[task] == 0) add_ready(task);
    }
  }

  TaskStreams run() {
    while (num_done_ < graph_.size()) {
      start_tasks();
      advance();
    }
    std::erase_if(streams_, [](const auto& stream) { return stream.empty(); });
    return std::move(streams_);
  }

 private:
  struct Running {
    TaskIndex task = 0;
    double work_at_us = 0;  // when it has started
    double left_us = 0;     // of its work at full speed
  };

  void start_tasks() {
    double processors = 0;
    double bandwidth = 0;
    size_t num_running = 0;
    for (const auto& running : running_) {
      if (!running) continue;
      ++num_running;
      processors += load(running->task).processors;
      bandwidth += load(running->task).bandwidth;
    }
    for (auto at = ready_.begin(); at != ready_.end() && num_running < running_.size();) {
      const TaskIndex task = *at;
      const bool has_room = std::max(processors + load(task).processors, bandwidth + load(task).bandwidth) <= room_;
      if (num_running > 0 && !has_room) {
        ++at;
        continue;
      }
      start(task);
      ++num_running;
      processors += load(task).processors;
      bandwidth += load(task).bandwidth;
      at = ready_.erase(at);
    }
  }

  // On the free stream where it begins first.
  void start(TaskIndex task) {
    size_t best = running_.size();
    double best_us = kInfinity;
    for (size_t s = 0; s < running_.size(); ++s) {
      if (running_[s] || begin_us(task, s) >= best_us) continue;
      best = s;
      best_us = begin_us(task, s);
    }
    running_[best] = Running{task, best_us + load(task).start_us, load(task).work_us};
    streams_[best].push_back(task);
    stream_of_[task] = best;
  }

  double begin_us(TaskIndex task, size_t stream) const {
    double begin = now_us_;
    for (const TaskIndex source : graph_.predecessors[task]) {
      begin = std::max(begin, end_us_[source] + (stream_of_[source] == stream ? 0 : sync_us_));
    }
    return begin;
  }

  bool is_working(const std::optional<Running>& running) const { return running && running->work_at_us <= now_us_; }

  // To the next moment at which a task begins to work, or has ended.
  void advance() {
    double processors = 0;
    double bandwidth = 0;
    for (const auto& running : running_) {
      if (!is_working(running)) continue;
      processors += load(running->task).processors;
      bandwidth += load(running->task).bandwidth;
    }
    const double speed = 1 / std::max({1.0, processors, bandwidth});
    const auto next_of = [&](const Running& running) {
      return is_working(running) ? now_us_ + running.left_us / speed : running.work_at_us;
    };
    double next_us = kInfinity;
    for (const auto& running : running_) {
      if (running) next_us = std::min(next_us, next_of(*running));
    }
    AG_CHECK(next_us < kInfinity, "shared list: {} of {} tasks never start", graph_.size() - num_done_, graph_.size());
    std::vector<size_t> ended;
    for (size_t s = 0; s < running_.size(); ++s) {
      if (!is_working(running_[s])) continue;
      if (next_of(*running_[s]) <= next_us) {
        ended.push_back(s);
      } else {
        running_[s]->left_us -= (next_us - now_us_) * speed;
      }
    }
    now_us_ = next_us;
    for (const size_t s : ended) end(s);
  }

  void end(size_t stream) {
    const TaskIndex task = running_[stream]->task;
    running_[stream].reset();
    end_us_[task] = now_us_;
    ++num_done_;
    for (const TaskIndex reader : graph_.successors[task]) {
      if (--missing_[reader] == 0) add_ready(reader);
    }
  }

  // Behind all whose way to the end is longer.
  void add_ready(TaskIndex task) {
    const auto is_before = [&](TaskIndex a, TaskIndex b) { return rank_[a] != rank_[b] ? rank_[a] > rank_[b] : a < b; };
    ready_.insert(std::upper_bound(ready_.begin(), ready_.end(), task, is_before), task);
  }

  const KernelLoad& load(TaskIndex task) const { return graph_.tasks[task].load; }

  const TaskGraph& graph_;
  double sync_us_;
  double room_;
  std::vector<double> rank_;
  std::vector<double> end_us_;
  std::vector<size_t> stream_of_;
  std::vector<size_t> missing_;  // sources that have not ended
  std::vector<std::optional<Running>> running_;
  TaskStreams streams_;
  std::vector<TaskIndex> ready_;  // the longest way to the end first
  double now_us_ = 0;
  size_t num_done_ = 0;
};

}  // namespace

std::optional<SharedListChoice> choose_shared_list(const TaskGraph& graph, const StreamLimits& limits) {
  std::optional<SharedListChoice> best;
  double best_us = sequential_us(graph);
  for (auto num_streams = static_cast<size_t>(std::max(limits.max_streams, 1)); num_streams > 0; num_streams /= 2) {
    for (const double room : kRooms) {
      // The clock may tell less than the list saw: on its stream a task starts as soon as it can.
      const TaskStreams streams = SharedList(graph, {num_streams, room}, limits.sync_us).run();
      const double us = estimate_us(graph, {streams}, limits);
      if (us >= best_us) continue;
      best_us = us;
      best = {num_streams, room};
    }
  }
  return best;
}

TaskStreams shared_list_streams(const TaskGraph& graph, const StreamLimits& limits) {
  return shared_list_streams(graph, choose_shared_list(graph, limits), limits.sync_us);
}

TaskStreams shared_list_streams(const TaskGraph& graph, const std::optional<SharedListChoice>& choice, double sync_us) {
  if (choice) return SharedList(graph, *choice, sync_us).run();
  TaskStreams sequence(1, std::vector<TaskIndex>(graph.size()));
  std::iota(sequence[0].begin(), sequence[0].end(), 0);
  return sequence;
}

}  // namespace autograph

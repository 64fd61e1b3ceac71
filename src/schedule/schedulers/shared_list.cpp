#include "schedule/schedulers/shared_list.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <set>

#include "base/check.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// What running tasks may ask for together, in devices: all of it starts early, at the price of the first ones' speed.
constexpr double kRooms[] = {1, 1.5, kInfinity};

class SharedList {
 public:
  SharedList(const TaskGraph& graph, size_t num_streams, double sync_us, double room)
      : graph_(graph),
        sync_us_(sync_us),
        room_(room),
        rank_(upward_ranks(graph)),
        end_us_(graph.size(), 0),
        stream_of_(graph.size(), 0),
        missing_(graph.size()),
        running_(num_streams),
        streams_(num_streams),
        ready_([this](TaskIndex a, TaskIndex b) { return rank_[a] != rank_[b] ? rank_[a] > rank_[b] : a < b; }) {
    for (TaskIndex task = 0; task < graph.size(); ++task) {
      missing_[task] = graph.predecessors[task].size();
      if (missing_[task] == 0) ready_.insert(task);
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
  /// When the last task ends.
  double us() const { return now_us_; }

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
      if (--missing_[reader] == 0) ready_.insert(reader);
    }
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
  std::set<TaskIndex, std::function<bool(TaskIndex, TaskIndex)>> ready_;
  double now_us_ = 0;
  size_t num_done_ = 0;
};

}  // namespace

TaskStreams shared_list_streams(const TaskGraph& graph, const StreamLimits& limits) {
  TaskStreams best(1, std::vector<TaskIndex>(graph.size()));
  std::iota(best[0].begin(), best[0].end(), 0);
  double best_us = sequential_us(graph);
  for (auto num_streams = static_cast<size_t>(std::max(limits.max_streams, 1)); num_streams > 0; num_streams /= 2) {
    for (const double room : kRooms) {
      SharedList list(graph, num_streams, limits.sync_us, room);
      TaskStreams streams = list.run();
      const double us = list.us() + (streams.size() > 1 ? limits.sync_us : 0);  // for the stage to begin
      if (us >= best_us) continue;
      best_us = us;
      best = std::move(streams);
    }
  }
  return best;
}

}  // namespace autograph

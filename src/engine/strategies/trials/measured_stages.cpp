#include "engine/strategies/trials/measured_stages.h"

#include <algorithm>

#include "autograph/error.h"
#include "autograph/seeded_inputs.h"
#include "optimize/search/part_graph.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// Stages whose estimate is this many times their sequence are hopeless.
constexpr double kHopeless = 1.5;
// For one stage: long enough for a few rounds of small kernels.
constexpr double kSecondsPerStage = 0.03;

bool is_free(const Task& task) { return task.us == 0 && task.narrow_us == 0; }

// A stage as a graph of its own: its tasks with the views and weight-only nodes that they read.
struct StagePart {
  PartGraph part;
  TaskGraph tasks;  // of the part
  TaskStreams streams;
};

class StageCutter {
 public:
  StageCutter(const Graph& graph, const TaskGraph& tasks) : graph_(graph), tasks_(tasks) {}

  StagePart cut(const TaskStreams& streams) {
    for (const auto& stream : streams) {
      for (const TaskIndex task : stream) add(task);
    }
    // The order of tasks is topological.
    std::sort(inside_.begin(), inside_.end());
    std::vector<NodeId> nodes;
    for (const TaskIndex task : inside_) nodes.push_back(tasks_.tasks[task].node);
    StagePart result{extract_part(graph_, nodes), {}, {}};
    result.tasks = make_task_graph(result.part.graph, [&](const Graph&, NodeId id) {
      const Task& task = tasks_.tasks[inside_[id.index]];
      return Task{id, task.us, task.narrow_us};
    });
    for (const auto& stream : streams) result.streams.push_back(renamed(stream));
    return result;
  }

 private:
  void add(TaskIndex task) {
    if (std::find(inside_.begin(), inside_.end(), task) != inside_.end()) return;
    inside_.push_back(task);
    for (const TaskIndex source : tasks_.predecessors[task]) {
      if (is_free(tasks_.tasks[source])) add(source);
    }
  }

  std::vector<TaskIndex> renamed(const std::vector<TaskIndex>& stream) const {
    std::vector<TaskIndex> names;
    for (const TaskIndex task : stream) {
      const auto at = std::lower_bound(inside_.begin(), inside_.end(), task);
      names.push_back(static_cast<TaskIndex>(at - inside_.begin()));
    }
    return names;
  }

  const Graph& graph_;
  const TaskGraph& tasks_;
  std::vector<TaskIndex> inside_;
};

std::string key_of(const StagePart& stage) {
  std::string key = to_string(part_key(stage.part));
  for (const auto& stream : stage.streams) {
    key += '|';
    for (const TaskIndex task : stream) key += std::to_string(task) + ',';
  }
  return key;
}

// The streams of a stage, named as tasks of its graph, as a schedule.
Schedule schedule_of(const StagePart& stage) {
  const WorkGraph work = without_free_tasks(stage.tasks);
  TaskStreams streams = stage.streams;
  for (auto& stream : streams) {
    for (TaskIndex& task : stream) {
      const auto at = std::lower_bound(work.origin.begin(), work.origin.end(), task);
      task = static_cast<TaskIndex>(at - work.origin.begin());
    }
  }
  return to_schedule(stage.tasks, work, {std::move(streams)});
}

}  // namespace

double MeasuredStages::us(const TaskStreams& streams) {
  const double estimate = estimate_stage_us(tasks_, streams, context_.limits());
  if (streams.size() < 2) return estimate;  // the sum of what its kernels take
  double in_sequence = 0;
  for (const auto& stream : streams) {
    for (const TaskIndex task : stream) in_sequence += tasks_.tasks[task].us;
  }
  if (estimate > kHopeless * in_sequence) return estimate;
  const std::optional<double> measured = ratio(streams);
  return measured ? *measured * in_sequence : estimate;
}

// What a stage takes over what its nodes take one after the other.
std::optional<double> MeasuredStages::ratio(const TaskStreams& streams) {
  const StagePart stage = StageCutter(proposal_.finished, tasks_).cut(streams);
  const std::string key = key_of(stage);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (context_.is_over(until_)) return std::nullopt;
  context_.progress("measuring stages", proposal_.cost_us);
  ++num_measured_;
  std::optional<double>& result = known_[key];
  try {
    const Trial trial(context_, seeded_inputs(stage.part.graph));
    const Executable in_turn = trial.compile(stage.part.graph, Schedule());
    const Executable side_by_side = trial.compile(stage.part.graph, schedule_of(stage));
    const AbTrial ab_trial = trial.ab_trial(in_turn, side_by_side, kSecondsPerStage);
    result = ab_trial.second_ms / ab_trial.first_ms;
  } catch (const Error&) {
    // Inputs that the nodes refuse, such as indices that other nodes would have made: the estimate must do.
  }
  return result;
}

}  // namespace autograph

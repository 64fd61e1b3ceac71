#include "schedule/schedulers/endings.h"

#include <bit>
#include <functional>

#include "base/check.h"

namespace autograph {
namespace {

TaskSet bit(size_t task) { return TaskSet{1} << task; }

class EndingWalk {
 public:
  EndingWalk(const PartEdges& edges, TaskSet set, const EndingLimits& limits, const std::function<bool(TaskSet)>& visit)
      : edges_(edges), set_(set), limits_(limits), visit_(visit) {}

  // Adds tasks before `end` to `chosen`, latest first: when a task's turn comes, all its readers have had theirs.
  bool extend(size_t end, TaskSet chosen, const std::vector<TaskSet>& groups) {
    for (TaskSet rest = set_ & (end < 64 ? bit(end) - 1 : ~TaskSet{0}); rest != 0;) {
      const auto task = static_cast<size_t>(std::bit_width(rest)) - 1;
      rest &= ~bit(task);
      if ((edges_.successors[task] & set_ & ~chosen) != 0) continue;
      const std::vector<TaskSet> joined = join(groups, task);
      if (std::popcount(joined.back()) > limits_.max_group) continue;
      const bool has_too_many = joined.size() > static_cast<size_t>(limits_.max_groups);
      if (has_too_many && count_final(joined, rest) > static_cast<size_t>(limits_.max_groups)) continue;
      const TaskSet ending = chosen | bit(task);
      if (!has_too_many && !visit_(ending)) return false;
      if (!extend(task, ending, joined)) return false;
    }
    return true;
  }

 private:
  // The groups with `task` added; its group is the last.
  std::vector<TaskSet> join(const std::vector<TaskSet>& groups, size_t task) const {
    std::vector<TaskSet> joined;
    joined.reserve(groups.size() + 1);
    TaskSet mine = bit(task);
    for (const TaskSet group : groups) {
      if ((group & edges_.successors[task]) != 0) {
        mine |= group;
      } else {
        joined.push_back(group);
      }
    }
    joined.push_back(mine);
    return joined;
  }

  // Groups that no task of `rest` can join: more tasks do not make them fewer.
  size_t count_final(const std::vector<TaskSet>& groups, TaskSet rest) const {
    size_t count = 0;
    for (const TaskSet group : groups) {
      TaskSet sources = 0;
      for (TaskSet left = group; left != 0; left &= left - 1) {
        sources |= edges_.predecessors[static_cast<size_t>(std::countr_zero(left))];
      }
      if ((sources & rest) == 0) ++count;
    }
    return count;
  }

  const PartEdges& edges_;
  TaskSet set_;
  const EndingLimits& limits_;
  const std::function<bool(TaskSet)>& visit_;
};

}  // namespace

PartEdges part_edges(const TaskGraph& graph) {
  AG_CHECK(graph.size() <= 64, "part: expected at most 64 tasks, got {}", graph.size());
  PartEdges edges{std::vector<TaskSet>(graph.size(), 0), std::vector<TaskSet>(graph.size(), 0)};
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    for (const TaskIndex reader : graph.successors[task]) {
      edges.successors[task] |= bit(reader);
      edges.predecessors[reader] |= bit(task);
    }
  }
  return edges;
}

bool for_each_ending(const PartEdges& edges, TaskSet set, const EndingLimits& limits,
                     const std::function<bool(TaskSet)>& visit) {
  return EndingWalk(edges, set, limits, visit).extend(64, 0, {});
}

std::vector<std::vector<TaskIndex>> connected_groups(const PartEdges& edges, TaskSet set) {
  std::vector<std::vector<TaskIndex>> groups;
  while (set != 0) {
    TaskSet group = set & ~(set - 1);
    for (TaskSet before = 0; before != group;) {
      before = group;
      for (TaskSet left = before; left != 0; left &= left - 1) {
        const auto task = static_cast<size_t>(std::countr_zero(left));
        group |= (edges.successors[task] | edges.predecessors[task]) & set;
      }
    }
    groups.emplace_back();
    for (TaskSet left = group; left != 0; left &= left - 1) {
      groups.back().push_back(static_cast<TaskIndex>(std::countr_zero(left)));
    }
    set &= ~group;
  }
  return groups;
}

}  // namespace autograph

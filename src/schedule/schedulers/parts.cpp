#include "schedule/schedulers/parts.h"

#include <algorithm>
#include <numeric>

#include "schedule/schedulers/reachability.h"
#include "schedule/schedulers/task_stages.h"

namespace autograph {
namespace {

// For each place of `order`: how many tasks up to it have readers in `order` after it.
std::vector<size_t> crossing_tasks(const TaskGraph& graph, const std::vector<TaskIndex>& order) {
  std::vector<size_t> place(graph.size(), 0);  // counted from 1; 0: not in `order`
  for (size_t i = 0; i < order.size(); ++i) place[order[i]] = i + 1;
  std::vector<int> change(order.size() + 1, 0);
  for (size_t i = 0; i < order.size(); ++i) {
    size_t last = 0;
    for (const TaskIndex reader : graph.successors[order[i]]) last = std::max(last, place[reader]);
    if (last == 0) continue;
    ++change[i];
    --change[last - 1];
  }
  std::vector<size_t> crossing(order.size());
  int now = 0;
  for (size_t i = 0; i < order.size(); ++i) crossing[i] = static_cast<size_t>(now += change[i]);
  return crossing;
}

// Cuts `order` into parts of at most `max_part`, each in its second half where the fewest values cross.
void cut_to_size(const TaskGraph& graph, const std::vector<TaskIndex>& order, size_t max_part,
                 std::vector<std::vector<TaskIndex>>& parts) {
  const std::vector<size_t> crossing = crossing_tasks(graph, order);
  for (size_t begin = 0; begin < order.size();) {
    size_t end = std::min(begin + max_part, order.size());
    for (size_t at = end; end < order.size() && at > begin + max_part / 2; --at) {
      if (crossing[at - 1] < crossing[end - 1]) end = at;
    }
    parts.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(begin),
                       order.begin() + static_cast<std::ptrdiff_t>(end));
    std::sort(parts.back().begin(), parts.back().end());
    begin = end;
  }
}

}  // namespace

std::vector<std::vector<TaskIndex>> sequential_parts(const TaskGraph& graph, size_t max_part) {
  const std::vector<bool> cuts = cut_points(graph);
  const std::vector<double> rank = upward_ranks(graph);
  std::vector<std::vector<TaskIndex>> parts;
  std::vector<TaskIndex> block;
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    block.push_back(task);
    if (!cuts[task] && task + 1 < graph.size()) continue;
    if (block.size() > max_part) {
      // By rank, so that what could run at the same time comes into one part.
      std::stable_sort(block.begin(), block.end(), [&](TaskIndex a, TaskIndex b) { return rank[a] > rank[b]; });
    }
    cut_to_size(graph, block, max_part, parts);
    block.clear();
  }
  return parts;
}

TaskGraph subgraph(const TaskGraph& graph, const std::vector<TaskIndex>& part) {
  const auto inside = [&](const std::vector<TaskIndex>& tasks) {
    std::vector<TaskIndex> found;
    for (const TaskIndex task : tasks) {
      const auto at = std::lower_bound(part.begin(), part.end(), task);
      if (at != part.end() && *at == task) found.push_back(static_cast<TaskIndex>(at - part.begin()));
    }
    return found;
  };
  TaskGraph result;
  for (const TaskIndex task : part) {
    result.tasks.push_back(graph.tasks[task]);
    result.successors.push_back(inside(graph.successors[task]));
    result.predecessors.push_back(inside(graph.predecessors[task]));
  }
  return result;
}

}  // namespace autograph

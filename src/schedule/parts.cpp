#include "schedule/parts.h"

#include <algorithm>
#include <numeric>

#include "schedule/reachability.h"

namespace autograph {
namespace {

// For each task: how many tasks up to it have readers after it.
std::vector<size_t> crossing_tasks(const TaskGraph& graph) {
  std::vector<size_t> crossing(graph.size() + 1, 0);
  std::vector<int> change(graph.size() + 1, 0);
  for (TaskIndex task = 0; task < graph.size(); ++task) {
    if (graph.successors[task].empty()) continue;
    ++change[task];
    --change[graph.successors[task].back()];
  }
  int now = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    now += change[i];
    crossing[i] = static_cast<size_t>(now);
  }
  return crossing;
}

// Cuts [begin, end) into pieces of at most `max_part`, each in its second half where the fewest values cross.
void cut_to_size(size_t begin, size_t end, size_t max_part, const std::vector<size_t>& crossing,
                 std::vector<size_t>& ends) {
  while (end - begin > max_part) {
    size_t best = begin + max_part;
    for (size_t at = begin + max_part; at > begin + max_part / 2; --at) {
      if (crossing[at - 1] < crossing[best - 1]) best = at;
    }
    ends.push_back(best);
    begin = best;
  }
  ends.push_back(end);
}

}  // namespace

std::vector<std::vector<TaskIndex>> sequential_parts(const TaskGraph& graph, size_t max_part) {
  const std::vector<bool> cuts = Reachability(graph).cut_points();
  const std::vector<size_t> crossing = crossing_tasks(graph);
  std::vector<size_t> ends;
  size_t begin = 0;
  for (size_t i = 0; i < graph.size(); ++i) {
    if (!cuts[i] && i + 1 < graph.size()) continue;
    cut_to_size(begin, i + 1, max_part, crossing, ends);
    begin = i + 1;
  }
  std::vector<std::vector<TaskIndex>> parts;
  begin = 0;
  for (const size_t end : ends) {
    parts.emplace_back(end - begin);
    std::iota(parts.back().begin(), parts.back().end(), static_cast<TaskIndex>(begin));
    begin = end;
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

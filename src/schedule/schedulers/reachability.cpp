#include "schedule/schedulers/reachability.h"

#include <algorithm>

namespace autograph {

Reachability::Reachability(const TaskGraph& graph)
    : size_(graph.size()), words_((graph.size() + 63) / 64), bits_(size_ * words_, 0) {
  for (auto task = static_cast<TaskIndex>(size_); task-- > 0;) {
    uint64_t* mine = row(task);
    // Readers come in topological order, so a path to a reader through another one is seen before the reader.
    for (const TaskIndex reader : graph.successors[task]) {
      if (reaches(task, reader)) continue;
      minimum_edges_.emplace_back(task, reader);
      const uint64_t* theirs = row(reader);
      for (size_t w = 0; w < words_; ++w) mine[w] |= theirs[w];
      mine[reader / 64] |= uint64_t{1} << (reader % 64);
    }
  }
  std::sort(minimum_edges_.begin(), minimum_edges_.end());
}

std::vector<bool> cut_points(const TaskGraph& graph) {
  const size_t size = graph.size();
  const auto end = static_cast<TaskIndex>(size);
  // Tasks are in topological order. All that come before a task reach it when each has a reader that comes no later:
  // going on from reader to reader, one comes to it. Likewise all behind it are reached.
  std::vector<TaskIndex> next_reader(size, end);
  std::vector<int64_t> last_source(size, -1);
  for (TaskIndex task = 0; task < end; ++task) {
    for (const TaskIndex reader : graph.successors[task]) next_reader[task] = std::min(next_reader[task], reader);
    for (const TaskIndex source : graph.predecessors[task]) {
      last_source[task] = std::max<int64_t>(last_source[task], source);
    }
  }
  std::vector<bool> cuts(size, true);
  TaskIndex latest = 0;  // of the next readers of all tasks before
  for (TaskIndex task = 0; task < end; ++task) {
    cuts[task] = latest <= task;
    latest = std::max(latest, next_reader[task]);
  }
  int64_t earliest = end;  // of the last sources of all tasks behind
  for (TaskIndex task = end; task-- > 0;) {
    cuts[task] = cuts[task] && earliest >= int64_t{task};
    earliest = std::min(earliest, last_source[task]);
  }
  return cuts;
}

}  // namespace autograph

// Which task reaches which, as bit sets: the closure of a task graph and its minimum equivalent graph.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// The transitive closure. Takes tasks^2 / 8 bytes and tasks * edges / 64 steps.
class Reachability {
 public:
  explicit Reachability(const TaskGraph& graph);
  /// Is there a path of at least one edge?
  bool reaches(TaskIndex from, TaskIndex to) const { return (row(from)[to / 64] >> (to % 64)) & 1U; }
  /// The edges that no path of two or more edges replaces, sorted: the minimum equivalent graph.
  std::vector<std::pair<TaskIndex, TaskIndex>> minimum_edges() const { return minimum_edges_; }

 private:
  const uint64_t* row(TaskIndex task) const { return bits_.data() + static_cast<size_t>(task) * words_; }
  uint64_t* row(TaskIndex task) { return bits_.data() + static_cast<size_t>(task) * words_; }

  size_t size_;
  size_t words_;
  std::vector<uint64_t> bits_;
  std::vector<std::pair<TaskIndex, TaskIndex>> minimum_edges_;
};

/// Tasks that every other task is ordered with: nothing can run beside them. Takes time in proportion to the edges.
std::vector<bool> cut_points(const TaskGraph& graph);

}  // namespace autograph

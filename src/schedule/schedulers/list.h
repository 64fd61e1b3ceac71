// The scheduler for devices whose kernels can use the whole device alone: mixed stages of one stream, whose tasks have
// all threads each, and of several streams, where running tasks side by side on fewer threads takes less time.
//
// Tasks are put into a topological order; then dynamic programming cuts it into runs. A run becomes a stage of one
// stream, or a stage of several streams that its tasks are spread over in that order, each to the stream on which it
// ends first. Several orders are tried: as the tasks stand, by upward rank (longest way to the end first), and by
// wavefronts. Where streams share the device there is nothing to be cut: all tasks are one stage (shared_list.h). The
// result never takes longer than running the tasks in sequence, by estimate_us().
#pragma once

#include <optional>
#include <vector>

#include "schedule/schedulers/shared_list.h"
#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// What list scheduling may do.
struct ListOptions {
  /// A stage of several streams must save this part of the time that its tasks take in sequence: estimates err.
  double min_gain = 0.02;
  size_t max_run = 512;  ///< Longest stage of several streams, in tasks.
};

/// Sequential when streams do not pay. O(tasks * max_run * streams).
Schedule schedule_list(const TaskGraph& graph, const StreamLimits& limits, const ListOptions& options = {});

/// As above, as stages of a graph without free tasks.
std::vector<TaskStreams> list_stages(const TaskGraph& graph, const StreamLimits& limits,
                                     const ListOptions& options = {});

/// How long list schedules of graphs take that differ little, such as a graph and its rewrites: thousands of them. What
/// is tried out where streams share the device is tried for the first one, and holds for those that follow.
class ListMakespan {
 public:
  explicit ListMakespan(const StreamLimits& limits) : limits_(limits) {}

  /// The next graph is the first one of others.
  void begin() { is_first_ = true; }
  /// Microseconds of `work`, which has no free tasks.
  double us(const TaskGraph& work);

 private:
  StreamLimits limits_;
  bool is_first_ = true;
  std::optional<SharedListChoice> choice_;
};

}  // namespace autograph

// Stages by dynamic programming, after IOS (Ding et al., "IOS: Inter-Operator Scheduler for CNN Acceleration", MLSys
// 2021): the last stage of a set S of tasks is an *ending*, a subset that nothing left in S depends on, so
//
//   cost[S] = min over endings E of cost[S \ E] + latency(E)
//
// A stage runs the connected groups of its tasks side by side (folded onto the streams of the device, longest first),
// or as one merged task where the caller knows how to merge. Pruning limits the size and the number of groups. Unlike
// the original, all endings are tried, also those whose groups have several roots that feed one task.
//
// Large graphs are cut into parts first (parts.h). A part that takes too many steps is searched again with fewer tasks
// in a group, then in halves; at the end there are always the wavefronts and the plain sequence.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// Microseconds of one task that does the work of all of these, or nothing when they cannot be merged. None of them
/// reads another. When tasks cannot be merged, nothing is asked about larger sets with them.
using MergeCost = std::function<std::optional<double>(std::span<const TaskIndex> tasks)>;

/// How far to search, and what things cost.
struct IosOptions {
  int max_group = 3;                 ///< Most tasks in a group ("r").
  int max_groups = 8;                ///< Most groups in a stage ("s").
  size_t max_part = 32;              ///< Most tasks in a part; at most 64.
  size_t max_transitions = 200'000;  ///< Pairs of a set and an ending to look at in one search of one part.
  double max_seconds = 60;           ///< For all parts together; later ones get what wavefronts give.
  int max_merge = 4;                 ///< Most tasks merged into one.
  StageCost stage_cost = nullptr;    ///< Asked once for each stage; null: estimate_stage_us().
  MergeCost merge_cost = nullptr;    ///< Asked once for each set; null: nothing is merged.
};

/// What the search found.
struct IosResult {
  Schedule schedule;                        ///< Merged tasks stand next to each other, alone on all threads.
  std::vector<std::vector<NodeId>> merges;  ///< Sets of nodes that the stages take as merged.
  double us = 0;                            ///< Sum of the stages' costs.
  size_t num_stages = 0;
  size_t num_states = 0;       ///< Sets that were looked at.
  size_t num_transitions = 0;  ///< Pairs of a set and an ending that were looked at.
  bool is_complete = true;     ///< Every part was searched with the group limits of the options.
};

/// The tasks that callbacks see are those of `graph`.
IosResult schedule_ios(const TaskGraph& graph, const StreamLimits& limits, const IosOptions& options = {});

}  // namespace autograph

// List scheduling for devices that streams share (KernelLoad): a task starts as soon as what it reads is there, a
// stream is free and the device has room for it, the one with the longest way to the end first; time goes on as the
// stream clock has it. Where the device is full nothing is gained by starting more, and what matters most gets less of
// it: so how much may be asked for at once, and on how many streams, is tried out.
#pragma once

#include <optional>

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// How tasks are listed.
struct SharedListChoice {
  size_t num_streams = 1;
  double room = 1;  ///< What running tasks may ask for together, in devices.
};

/// The choice by which `graph`, which has no free tasks, ends first; nothing where one task after the other does.
std::optional<SharedListChoice> choose_shared_list(const TaskGraph& graph, const StreamLimits& limits);

/// The streams of a stage with all tasks of `graph`, which has no free ones, that end first where that is the only one:
/// by estimate_us().
TaskStreams shared_list_streams(const TaskGraph& graph, const StreamLimits& limits);

/// The same, listed so.
TaskStreams shared_list_streams(const TaskGraph& graph, const std::optional<SharedListChoice>& choice, double sync_us);

}  // namespace autograph

// List scheduling for devices that streams share (KernelLoad): a task starts as soon as what it reads is there, a
// stream is free and the device has room for it, the one with the longest way to the end first; time goes on as the
// stream clock has it. Where the device is full nothing is gained by starting more, and what matters most gets less of
// it: so how much may be asked for at once, and on how many streams, is tried out.
#pragma once

#include "schedule/schedulers/task_graph.h"

namespace autograph {

/// The streams of one stage with all tasks of `graph`, which has no free ones, that end first by estimate_stage_us().
TaskStreams shared_list_streams(const TaskGraph& graph, const StreamLimits& limits);

}  // namespace autograph

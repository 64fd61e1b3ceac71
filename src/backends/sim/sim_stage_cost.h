// What stages take on a simulated device, for schedulers that ask: kernels beside each other slow each other down.
#pragma once

#include "backends/sim/sim_machine.h"
#include "schedule/task_graph.h"

namespace autograph {

/// Microseconds of a stage that runs alone, launched from a captured graph; `sync_us` more where it has several
/// streams, as estimate_stage_us() has it. `tasks` are those of `graph`; nothing is referred to after the call.
StageCost sim_stage_cost(const Graph& graph, const TaskGraph& tasks, const SimMachine& machine);

}  // namespace autograph

// States for which the memory of a device has no room: they wait in that of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/compiled_plan.h"

namespace autograph {

/// What a plan needs in the memory of its device, in bytes: the arena, outputs of the graph, and states that stay
/// there.
size_t bytes_on_device(const CompiledPlan& compiled);

/// Inputs of the plan, states, that must wait on the host besides those that do, so that the rest is within `budget`:
/// those that are in use for the fewest steps first. Empty where all fits, or where none can go.
std::vector<uint32_t> find_cold_states(const CompiledPlan& compiled, size_t budget);

}  // namespace autograph

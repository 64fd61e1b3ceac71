// What is known about the steps of a plan before they run: the part of a profile that is not measured.
#pragma once

#include <vector>

#include "autograph/run_report.h"
#include "runtime/compiled_plan.h"

namespace autograph {

/// One entry for each step, in their order, with times of 0. Work is that of cost_of(); a change of layout reads and
/// writes its tensor; steps whose shapes are known only while running have none.
std::vector<StepProfile> describe_steps(const CompiledPlan& compiled);

}  // namespace autograph

// The longest chain of dependent steps of a profiled run: what remains when everything else runs beside it.
#pragma once

#include <vector>

#include "autograph/compile.h"

namespace autograph {

/// Microseconds on the longest path through `graph`. Steps are matched to nodes by op and name; steps that match no
/// node (and nodes without a step) take no time on the path.
double critical_path_us(const Graph& graph, const std::vector<StepProfile>& steps);

}  // namespace autograph

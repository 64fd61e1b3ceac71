// Times of a profiled run, by node.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/run_report.h"

namespace autograph {

/// Microseconds of each node by its position in graph.topological_order(). Steps are matched to nodes by op and name,
/// equal ones in order; a node without a step takes no time.
std::vector<double> node_times_us(const Graph& graph, const std::vector<StepProfile>& steps);

}  // namespace autograph

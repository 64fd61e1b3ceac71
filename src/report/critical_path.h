// The longest chain of dependent nodes of a profiled run: what remains when everything else runs beside it.
#pragma once

#include <vector>

#include "autograph/compile.h"

namespace autograph {

/// The nodes on the longest path, in order, and its length.
struct CriticalPath {
  std::vector<NodeId> nodes;
  double us = 0;
};

/// The longest path through `graph` with the times `node_us` of its nodes, by position in topological order.
CriticalPath critical_path(const Graph& graph, const std::vector<double>& node_us);

/// Microseconds on the longest path through `graph`. Steps are matched to nodes by op and name; steps that match no
/// node (and nodes without a step) take no time on the path.
double critical_path_us(const Graph& graph, const std::vector<StepProfile>& steps);

}  // namespace autograph

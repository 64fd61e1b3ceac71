// Times of a profiled run, by node.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/run_report.h"

namespace autograph {

/// When a node ran, since the start of the run.
struct NodeSpan {
  double start_us = 0;
  double end_us = 0;
  double us() const { return end_us - start_us; }
};

/// The span of each node, by its number. Steps are matched to nodes by op and name, equal ones in order; a node without
/// a step takes no time.
std::vector<NodeSpan> node_spans(const Graph& graph, const std::vector<StepProfile>& steps);

/// Microseconds of each node by its position in graph.topological_order().
std::vector<double> node_times_us(const Graph& graph, const std::vector<StepProfile>& steps);

}  // namespace autograph

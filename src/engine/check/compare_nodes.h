// Where the reference would take too long for a whole graph: the graph is run by plain kernels, values all over it are
// looked at, as many as time and memory allow, and of each of their nodes some elements are computed again by the
// reference from what the node read. So numbers that the kernels get wrong are found, whatever is compared with them
// later.
#pragma once

#include <string>
#include <vector>

#include "accuracy/scaled_run.h"
#include "autograph/compile.h"
#include "autograph/graph.h"

namespace autograph {

struct NodeComparison {
  std::vector<ScaledDatum> outputs;  ///< Of the graph, by kernels, with estimates of their scales.
  std::string fault;                 ///< The first node that was wrong, with values; "" when there is none.
  size_t num_nodes = 0;
  size_t num_compared = 0;  ///< Nodes that were compared.
  int64_t num_elements = 0;
  size_t num_unattested = 0;  ///< Kernels that the graph was run by, which there was no time to attest.
};

/// Have all values of the graph static types and all nodes a reference?
bool can_compare_nodes(const Graph& graph);

/// Nodes are compared, evenly spread, until `seconds` are over, of which compiling and running the graph are a part; a
/// few are in any case.
NodeComparison compare_nodes(const Graph& graph, const std::vector<Datum>& inputs, const CompileOptions& options,
                             const ErrorModel& model, double seconds);

}  // namespace autograph

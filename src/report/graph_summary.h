// What is in a graph: counts, weights, work.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "autograph/graph.h"

namespace autograph {

/// Totals over a graph and the graphs nested in it (a loop's body counts once).
struct GraphSummary {
  int64_t nodes = 0;
  std::map<std::string, int64_t> ops;  ///< Nodes by their ONNX name, or our name where ONNX has none.
  int64_t parameters = 0;          ///< Elements of constants, without those of shape arithmetic (i64, bool, string).
  int64_t parameter_bytes = 0;     ///< Their bytes.
  double flops = 0;                ///< Multiply-add counts 2. Symbolic extents as in seeded_inputs.h.
  double bytes = 0;                ///< Read and written, every tensor once for each node that touches it.
  double io_bytes = 0;             ///< Bytes of inputs and outputs, as far as their shapes are known.
  int64_t nodes_without_cost = 0;  ///< Nodes whose shapes depend on data: not in flops and bytes.
};

/// Adds up `graph`. Weights are neither read nor copied.
GraphSummary summarize(const Graph& graph);

/// The name by which people know the op of `node`: ONNX's, or ours where ONNX has none.
std::string display_name(const Node& node);

}  // namespace autograph

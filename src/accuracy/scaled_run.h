// A whole graph by the reference, with the scales of its rounding errors: what other ways of computing it are compared
// with.
#pragma once

#include <functional>
#include <vector>

#include "accuracy/scaled_tensor.h"
#include "autograph/graph.h"

namespace autograph {

/// A value of any kind. Of sequences and what is in them no scale is known.
struct ScaledDatum {
  Datum value;
  Tensor scale;
};

/// Outputs of `graph`, whose ops have a reference or a body, node by node; every type is inferred again from the values
/// at hand. Throws what inference and the ops throw. `should_stop` is asked before each node: true ends the run,
/// without outputs.
std::vector<ScaledDatum> run_scaled(const Graph& graph, const std::vector<ScaledDatum>& inputs, const ErrorModel& model,
                                    const std::function<bool()>& should_stop = nullptr);

/// The same, but scales are followed from the nodes of `tail` on alone: those of the values before them are estimated.
/// The reference runs once for each node then, and not six times and more.
std::vector<ScaledDatum> run_scaled_behind(const Graph& graph, const std::vector<NodeId>& tail,
                                           const std::vector<ScaledDatum>& inputs, const ErrorModel& model,
                                           const std::function<bool()>& should_stop);

/// What elements in the middle of a graph may be off by, where nobody followed them from its inputs.
Tensor usual_scale(const Tensor& tensor);

/// As many of the last nodes of `graph` as the reference computes with their scales by so many operations.
std::vector<NodeId> last_nodes(const Graph& graph, double flops);

/// A node takes as long as so many floating-point operations, however little it computes.
inline constexpr double kFlopsOfNode = 1e4;

/// What that takes: floating-point operations, and bytes at the fullest moment. Of nodes whose shapes are not known
/// only kFlopsOfNode counts.
struct ScaledRunCost {
  double flops = 0;
  double plain_flops = 0;  ///< Without scales.
  double bytes = 0;
};
ScaledRunCost cost_of_scaled_run(const Graph& graph);

}  // namespace autograph

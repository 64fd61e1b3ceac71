// Random typed graphs, drawn from the samples of the ops.
#pragma once

#include "autograph/op_def.h"
#include "support/graphs/sample_graph.h"

namespace autograph {

/// Can random graphs use this op: pure, deterministic, on plain tensors?
bool is_drawable(const OpDef& op);

/// A graph of about `num_nodes` drawn nodes, with inputs. Every node is a legal call; f32 inputs are taken from earlier
/// nodes where possible, reshaped to fit, so that ops feed each other in all combinations. Values nobody reads are
/// outputs.
TestGraph make_random_graph(Random& random, int num_nodes);

}  // namespace autograph

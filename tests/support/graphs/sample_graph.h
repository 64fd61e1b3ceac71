// Graphs of one node, made from an op's sample.
#pragma once

#include <vector>

#include "autograph/graph.h"
#include "autograph/op_def.h"

namespace autograph {

/// A graph and inputs for it.
struct TestGraph {
  Graph graph;
  std::vector<Datum> inputs;
};

/// One node of `op` called as `sample` says. Small integer inputs (shapes, axes, indices) become constants, so that
/// infer can read them; with `all_inputs` everything becomes a graph input, with `constant_weights` nothing but the
/// first one. All outputs of the node are graph outputs.
TestGraph make_sample_graph(const OpDef& op, const OpSample& sample, bool all_inputs = false,
                            bool constant_weights = false);

/// The type of a value: a tensor's own, a sequence's that of its first element (f32[...] when it is empty).
Type type_of_datum(const Datum& datum);

/// Is this sample input a shape, a list of axes or the like: integers, rank at most 1?
bool is_shape_like(const Datum& datum);

}  // namespace autograph

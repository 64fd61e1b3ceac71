// What the tests of passes share: run one pass on a graph, look at what is left, and compare the numbers with the
// reference on random inputs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/op_def.h"
#include "autograph/random.h"
#include "autograph/verify.h"
#include "ops/sample.h"
#include "optimize/pass.h"
#include "support/compare.h"

namespace autograph {

using PassFn = bool (*)(Graph&, PassContext&);

/// A device with a kernel for everything.
inline PassContext willing_device() {
  PassContext context;
  context.has_kernel = [](const Graph&, NodeId) { return true; };
  context.expects_kernel = [](const Graph&, NodeId) { return true; };
  return context;
}

/// A constant of one element.
inline Var scalar(Graph& graph, float value) { return constant(graph, Tensor::scalar(value)); }

/// Names of the ops in topological order, separated by blanks.
inline std::string ops_of(const Graph& graph) {
  std::string names;
  for (const NodeId id : graph.topological_order()) {
    if (!names.empty()) names += ' ';
    names += graph.node(id).op().name;
  }
  return names;
}

/// The only node of a graph.
inline const Node& only_node(const Graph& graph) {
  EXPECT_EQ(graph.num_nodes(), 1u) << ops_of(graph);
  return graph.node(graph.nodes().front());
}

/// Random elements for the static inputs of a graph, in [-range, range].
inline std::vector<Datum> random_inputs(const Graph& graph, Random& random, double range = 3) {
  std::vector<Datum> inputs;
  for (const ValueId v : graph.inputs()) {
    const Type& type = graph.type(v);
    inputs.emplace_back(draw_tensor(random, type.dtype(), type.shape().static_dims(), -range, range));
  }
  return inputs;
}

/// "" when both compute the same on random inputs, on the reference device without passes.
inline std::string numeric_difference(const Graph& before, const Graph& after, Random& random,
                                      const FloatTolerance& tolerance = {}) {
  CompileOptions options;
  options.device = "reference";
  options.expert.use_passes = false;
  const std::vector<Datum> inputs = random_inputs(before, random);
  return difference(compile(after, options).run(inputs), compile(before, options).run(inputs), tolerance);
}

/// Runs `pass` on a device with all kernels, then removes what is dead; checks that the graph is whole and still
/// computes the same. Returns the graph after.
inline Graph after_pass(PassFn pass, const Graph& before, bool expect_change = true,
                        const FloatTolerance& tolerance = {}) {
  Random random(11);
  Graph after = before;
  PassContext context = willing_device();
  EXPECT_EQ(pass(after, context), expect_change) << ops_of(before);
  after.erase_dead();
  verify(after);
  EXPECT_EQ(numeric_difference(before, after, random, tolerance), "") << ops_of(after);
  return after;
}

/// The graph must stay as it is.
inline void expect_untouched(PassFn pass, const Graph& before) {
  const Graph after = after_pass(pass, before, false);
  EXPECT_EQ(ops_of(after), ops_of(before));
}

}  // namespace autograph

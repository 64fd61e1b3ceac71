// The work of a node, for estimates: what cost_of() tells, and what kind of work it is.
#pragma once

#include <optional>

#include "autograph/graph.h"
#include "autograph/op_def.h"
#include "ops/recurrent/walk_work.h"

namespace autograph {

struct NodeWork {
  bool is_known = false;         ///< Are all extents known? If not, the rest is 0.
  double flops = 0;              ///< As OpCost.
  double bytes = 0;              ///< As OpCost; of fused nodes, what goes in and out.
  double outputs = 0;            ///< Elements of all outputs.
  const OpDef* op = nullptr;     ///< The op that does the work: of a fused node, the anchor of its body if it has one.
  std::optional<WalkWork> walk;  ///< The part of it that is done step by step.

  /// Multiply-adds that make one element of the output: the length of the sums of a product or a convolution.
  double inner() const { return outputs > 0 ? flops / (2 * outputs) : 0; }
};

/// The work of one run of a node.
NodeWork node_work(const Graph& graph, NodeId node);

}  // namespace autograph

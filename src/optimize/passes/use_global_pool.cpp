// use_global_pool: a mean over all spatial axes becomes global_average_pool, whatever the exporter wrote.
//
// Squeeze-excite blocks and classifier heads have one spelling then, and the pool takes part in the choice of layouts.
// Without keepdims a reshape to [batch, channels] follows. Holds before: floats of rank 4 or more, since
// rank 3 is mostly [batch, length, width]; the axes are exactly 2, 3, ....
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool is_spatial_mean(const Graph& graph, const Node& node) {
  if (&node.op() != &reduce_mean_def() || !dtypes::kFloat.contains(graph.type(node.output(0)).dtype())) return false;
  const Shape& shape = graph.type(node.input(0)).shape();
  auto axes = integer_constants(graph, node.input(1));
  if (!axes || !shape.has_rank() || shape.rank() < 4) return false;
  if (axes->size() != static_cast<size_t>(shape.rank()) - 2) return false;
  for (int64_t& axis : *axes) axis = axis < 0 ? axis + shape.rank() : axis;
  std::sort(axes->begin(), axes->end());
  for (size_t k = 0; k < axes->size(); ++k) {
    if ((*axes)[k] != static_cast<int64_t>(k) + 2) return false;
  }
  return true;
}

bool replace(Graph& graph, NodeId id) {
  const Node& mean = graph.node(id);
  const ValueId result = mean.output(0);
  const ValueId x = mean.input(0);
  const bool keeps_dims = mean.attributes().flag("keepdims");
  const Provenance origins = mean.provenance();
  ValueId pooled = graph.node(graph.add_node(global_average_pool_def(), {x}, {}, {.provenance = origins})).output(0);
  if (!keeps_dims) {
    // 0 copies an extent.
    const ValueId shape = graph.add_constant(Tensor::vector({0, 0}));
    pooled = graph.node(graph.add_node(reshape_def(), {pooled, shape}, {}, {.provenance = origins})).output(0);
  }
  replace_pattern(graph, result, pooled);
  return true;
}

}  // namespace

bool use_global_pool(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    if (is_spatial_mean(graph, graph.node(id))) changed = replace(graph, id) || changed;
  }
  return changed;
}

}  // namespace autograph

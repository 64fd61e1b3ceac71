#include "graph/diff/without_copies.h"

#include <algorithm>

#include "autograph/op_def.h"

namespace autograph {
namespace {

bool is_one_shape(const Type& before, const Type& after) {
  const bool has_shapes = before.is_tensor() && after.is_tensor() && before.shape().has_rank();
  const auto can_be_compared = [](const Dim& extent) { return !extent.is_unknown(); };
  return has_shapes && before == after &&
         std::all_of(before.shape().dims().begin(), before.shape().dims().end(), can_be_compared);
}

// Nothing but its one input decides about its output: then a view is a copy, whatever its shape.
bool reads_one_value(const Node& node) { return node.op().inputs.size() == 1 && node.op().attributes.empty(); }

bool hands_on(const Graph& graph, const Node& node) {
  if (!node.op().traits.view || node.outputs().size() != 1) return false;
  return reads_one_value(node) || is_one_shape(graph.type(node.input(0)), graph.type(node.output(0)));
}

}  // namespace

Graph without_copies(const Graph& graph) {
  Graph result = graph;
  for (const NodeId id : result.topological_order()) {
    const Node& node = result.node(id);
    if (hands_on(result, node)) result.replace_uses(node.output(0), node.input(0));
  }
  result.erase_dead();
  return result;
}

}  // namespace autograph

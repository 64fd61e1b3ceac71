// eliminate_identity: removes nodes whose output is their input.
//
// Which nodes these are, ops say themselves: a view (Traits::view) that keeps dtype and shape, such as identity or a
// reshape to the same shape.
#include "autograph/op_def.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// Is it certain that both have the same dtype and extents?
bool same_type(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype()) return false;
  if (!a.shape().has_rank() || !b.shape().has_rank() || a.shape().rank() != b.shape().rank()) return false;
  for (int64_t axis = 0; axis < a.shape().rank(); ++axis) {
    if (!a.shape()[axis].same_as(b.shape()[axis])) return false;
  }
  return true;
}

bool is_identity(const Graph& graph, const Node& node) {
  if (node.inputs().empty() || !node.input(0).is_valid() || node.outputs().empty()) return false;
  for (size_t k = 1; k < node.outputs().size(); ++k) {
    if (!graph.value(node.output(k)).uses().empty() || graph.num_output_uses(node.output(k)) > 0) return false;
  }
  const OpDef& op = node.op();
  return op.traits.view && same_type(graph.type(node.input(0)), graph.type(node.output(0)));
}

}  // namespace

bool eliminate_identity(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    if (!graph.is_live(id) || !is_identity(graph, graph.node(id))) continue;
    replace_value(graph, graph.node(id).output(0), graph.node(id).input(0));
    graph.erase_node(id);
    changed = true;
  }
  return changed;
}

}  // namespace autograph

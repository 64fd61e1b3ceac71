// resolve_shapes: reshapes to a shape that the model computes from symbolic extents get a constant one.
//
//   x: f32[batch, seq, 768];  reshape(x, concat(shape(x)[0], shape(x)[1], [-1, 64]))    becomes
//                             reshape(x, [0, 0, -1, 64]) : f32[batch, seq, 12, 64]
//
// An extent of x at the same place is copied (0); one other symbolic extent may be worked out (-1), as long as none is
// copied beside it that could be 0. Types behind the reshape become known on the way: what patterns need in models with
// dynamic dims. Static graphs have nothing to resolve: constant folding has done it.
#include <algorithm>

#include "autograph/op_def.h"
#include "graph/infer_node.h"
#include "ops/op_list.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/symbolic_integers.h"

namespace autograph {
namespace {

// The extents as numbers in which reshape takes them; nothing when that cannot be said.
std::optional<std::vector<int64_t>> reshape_target(const std::vector<SymbolicInteger>& extents, const Shape& x) {
  std::vector<int64_t> target;
  int64_t copied = 0;
  int64_t worked_out = 0;
  bool has_own_minus_one = false;
  for (size_t k = 0; k < extents.size(); ++k) {
    const SymbolicInteger& extent = extents[k];
    if (extent.number) {
      if (*extent.number == 0) return std::nullopt;
      has_own_minus_one = has_own_minus_one || *extent.number < 0;
      target.push_back(*extent.number);
    } else if (k < x.dims().size() && extent.symbol.same_as(x.dims()[k])) {
      target.push_back(0);
      ++copied;
    } else {
      target.push_back(-1);
      ++worked_out;
    }
  }
  const bool is_certain = worked_out == 0 || (worked_out == 1 && copied == 0 && !has_own_minus_one);
  return is_certain ? std::optional(target) : std::nullopt;
}

// `fresh` with the extents of `old` where it knows nothing.
Type merged(const Type& old, Type fresh) {
  if (!old.is_tensor() || !fresh.is_tensor() || !old.shape().has_rank()) return fresh;
  if (!fresh.shape().has_rank()) return old;
  if (fresh.shape().rank() != old.shape().rank()) return fresh;
  Shape shape = fresh.shape();
  for (int64_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis].is_unknown()) shape[axis] = old.shape()[axis];
  }
  return {fresh.dtype(), std::move(shape)};
}

void infer_again(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const std::vector<Type> types = infer_node(node.op(), graph, node.inputs(), node.attributes(), node.outputs().size(),
                                             node.provenance().to_string());
  for (size_t k = 0; k < types.size(); ++k) {
    const ValueId output = graph.node(id).output(k);
    graph.set_type(output, merged(graph.type(output), types[k]));
  }
}

bool resolve(Graph& graph, NodeId id, SymbolicIntegers& integers) {
  const Node& node = graph.node(id);
  if (&node.op() != &reshape_def() || graph.value(node.input(1)).is_constant()) return false;
  if (node.attributes().flag("allowzero")) return false;
  const auto* extents = integers.find(node.input(1));
  const Shape& x = graph.type(node.input(0)).shape();
  const auto target = extents && x.has_rank() ? reshape_target(*extents, x) : std::nullopt;
  if (!target) return false;
  graph.set_input(id, 1, graph.add_constant(Tensor::vector(*target)));
  return true;
}

bool has_computed_shape(const Graph& graph) {
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const Node& node = graph.node(id);
    return &node.op() == &reshape_def() && !graph.value(node.input(1)).is_constant();
  });
}

}  // namespace

bool resolve_shapes(Graph& graph, PassContext&) {
  if (!has_computed_shape(graph)) return false;
  SymbolicIntegers integers(graph);
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    changed = resolve(graph, id, integers) || changed;
    // Nothing is known anew before the first change.
    if (changed) infer_again(graph, id);
    integers.visit(id);
  }
  if (changed) graph.erase_dead();
  return changed;
}

}  // namespace autograph

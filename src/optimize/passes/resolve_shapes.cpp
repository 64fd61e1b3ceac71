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
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/symbolic_integers.h"

namespace autograph {
namespace {

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

// What `extents` say about the result of a reshape that keeps its computed shape.
bool refine_type(Graph& graph, ValueId result, const std::vector<SymbolicInteger>& extents) {
  std::vector<Dim> dims;
  for (const SymbolicInteger& extent : extents) {
    if (extent.number == 0) return false;
    dims.push_back(extent.number.value_or(0) < 0 ? Dim::unknown()
                   : extent.number               ? Dim(*extent.number)
                                                 : extent.symbol);
  }
  const Type old = graph.type(result);
  if (!old.is_tensor()) return false;
  graph.set_type(result, merged(old, Type(old.dtype(), Shape(std::move(dims)))));
  return !(graph.type(result) == old);
}

enum class Outcome : uint8_t { nothing, type, constant };

Outcome resolve(Graph& graph, NodeId id, SymbolicIntegers& integers) {
  const Node& node = graph.node(id);
  if (&node.op() != &reshape_def() || graph.value(node.input(1)).is_constant()) return Outcome::nothing;
  const auto* extents = node.attributes().flag("allowzero") ? nullptr : integers.find(node.input(1));
  if (!extents) return Outcome::nothing;
  const Shape& x = graph.type(node.input(0)).shape();
  const auto target = x.has_rank() ? reshape_target(*extents, x) : std::nullopt;
  if (!target) return refine_type(graph, node.output(0), *extents) ? Outcome::type : Outcome::nothing;
  graph.set_input(id, 1, graph.add_constant(Tensor::vector(*target)));
  return Outcome::constant;
}

// Replaces a list of extents that turned out to be numbers.
bool replace_by_constant(Graph& graph, NodeId id, SymbolicIntegers& integers) {
  const ValueId result = graph.node(id).output(0);
  const auto* elements = integers.find(result);
  if (!elements || elements->empty() || num_reads(graph, result) == 0) return false;
  std::vector<int64_t> numbers;
  for (const SymbolicInteger& element : *elements) {
    if (!element.number) return false;
    numbers.push_back(*element.number);
  }
  const Type& type = graph.type(result);
  if (type.dtype() != DType::i64 || !type.is_static()) return false;
  const ValueId constant = graph.add_constant(Tensor::vector(numbers).reshaped(type.shape().static_dims()));
  graph.replace_uses(result, constant);
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
  bool types_changed = false;
  for (const NodeId id : graph.topological_order()) {
    const Outcome outcome = resolve(graph, id, integers);
    changed = changed || outcome == Outcome::constant;
    // Nothing is known anew before the first change; a refined type stays as it is.
    if (changed || types_changed) infer_again(graph, id);
    types_changed = types_changed || outcome == Outcome::type;
    integers.visit(id);
    changed = replace_by_constant(graph, id, integers) || changed;
  }
  if (changed) graph.erase_dead();
  return changed || types_changed;
}

}  // namespace autograph

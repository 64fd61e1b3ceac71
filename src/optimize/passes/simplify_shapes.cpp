// simplify_shapes: chains of reshapes and transposes become one of them, or none.
//
//   view of a view                     one reshape of the first one's input
//   squeeze of what unsqueeze added    what was there before, of whatever shape
//   reshape with a computed shape      reshape with a constant one, wherever the result's extents are known, copied
//   from
//                                      the input, or a single unknown one
//   transpose of a transpose           one transpose
//   transpose that moves only 1s       reshape
//   result of the same type            its input
//
// What computed the shape is dead afterwards, unless others read it. A view whose result has two extents that are
// neither known nor copied stays: -1 may stand for one only. So does one that would need a copied extent next to -1:
// with a copied 0, -1 has no value.
#include <algorithm>
#include <numeric>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"
#include "optimize/symbolic_integers.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

// The node that makes `v`, when it is a view.
const Node* view_behind(const Graph& graph, ValueId v) {
  const NodeId producer = graph.value(v).producer();
  if (!producer.is_valid() || graph.value(v).slot() != 0) return nullptr;
  const Node& node = graph.node(producer);
  return node.op().traits.view && graph.type(v).is_tensor() ? &node : nullptr;
}

// The first tensor that has the elements of `v`.
ValueId first_of_views(const Graph& graph, ValueId v) {
  for (const Node* node = view_behind(graph, v); node; node = view_behind(graph, v)) v = node->input(0);
  return v;
}

bool replace_by_reshape(Graph& graph, NodeId id, ValueId source) {
  const ValueId result = graph.node(id).output(0);
  const Shape& from = graph.type(source).shape();
  const Shape& to = graph.type(result).shape();
  if (!from.has_rank() || !to.has_rank()) return false;
  const auto target = reshape_target({to.dims().begin(), to.dims().end()}, from);
  if (!target) return false;
  const ValueId shape = graph.add_constant(Tensor::vector(*target));
  const Attributes attributes{{"allowzero", int64_t{0}}};
  const NodeId reshape = graph.add_node_typed(reshape_def(), {source, shape}, attributes, {graph.type(result)},
                                              graph.node(id).provenance());
  replace_pattern(graph, result, graph.node(reshape).output(0));
  return true;
}

// What a squeeze takes the axes from that an unsqueeze had added; nothing where `node` does not.
ValueId before_unsqueeze(const Graph& graph, const Node& node) {
  if (&node.op() != &squeeze_def() || !node.input(1).is_valid()) return {};
  const Node* inner = made_by(graph, node.input(0), unsqueeze_def());
  if (!inner) return {};
  const auto added = integer_constants(graph, inner->input(1)), removed = integer_constants(graph, node.input(1));
  return added && added == removed ? inner->input(0) : ValueId();
}

bool simplify_view(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const ValueId result = node.output(0);
  if (const ValueId same = before_unsqueeze(graph, node); same.is_valid()) {
    replace_pattern(graph, result, same);
    return true;
  }
  if (!graph.type(result).is_tensor()) return false;
  const ValueId source = first_of_views(graph, result);
  if (same_tensor_type(graph.type(source), graph.type(result))) {
    replace_pattern(graph, result, source);
    return true;
  }
  const bool is_computed = &node.op() == &reshape_def() && !graph.value(node.input(1)).is_constant();
  return (source != node.input(0) || is_computed) && replace_by_reshape(graph, id, source);
}

std::optional<std::vector<int64_t>> permutation(const Graph& graph, const Node& transpose) {
  const Shape& shape = graph.type(transpose.input(0)).shape();
  if (!shape.has_rank()) return std::nullopt;
  std::vector<int64_t> perm(shape.dims().size());
  if (const auto* given = transpose.attributes().find_as<std::vector<int64_t>>("perm")) {
    perm = *given;
  } else {
    std::iota(perm.rbegin(), perm.rend(), 0);
  }
  for (int64_t& axis : perm) axis = front_axis(axis, shape.rank());
  return perm;
}

bool keeps_order(const Shape& from, const std::vector<int64_t>& perm, bool ignore_ones) {
  int64_t last = -1;
  for (const int64_t axis : perm) {
    if (ignore_ones && from[axis].value_or(0) == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

bool simplify_transpose(Graph& graph, NodeId id) {
  const ValueId result = graph.node(id).output(0);
  ValueId source = graph.node(id).input(0);
  auto perm = permutation(graph, graph.node(id));
  if (!perm) return false;
  const Node* inner = made_by(graph, source, transpose_def());
  const auto inner_perm = inner ? permutation(graph, *inner) : std::nullopt;
  if (inner_perm) {
    for (int64_t& axis : *perm) axis = (*inner_perm)[static_cast<size_t>(axis)];
    source = inner->input(0);
  }
  const Shape& from = graph.type(source).shape();
  if (keeps_order(from, *perm, false)) {
    replace_pattern(graph, result, source);
    return true;
  }
  if (keeps_order(from, *perm, true) && replace_by_reshape(graph, id, source)) return true;
  if (!inner_perm) return false;
  const NodeId merged = graph.add_node(transpose_def(), {source}, {{"perm", *perm}});
  replace_pattern(graph, result, graph.node(merged).output(0));
  return true;
}

}  // namespace

bool simplify_shapes(Graph& graph, PassContext&) {
  return rewrite_nodes(graph, [&](NodeId id) {
    const OpDef& op = graph.node(id).op();
    return &op == &transpose_def() ? simplify_transpose(graph, id) : op.traits.view && simplify_view(graph, id);
  });
}

}  // namespace autograph

// fuse_softmax: exp(x - max(x)) / sum(exp(x - max(x))) along one axis becomes softmax.
//
// The maximum may be missing: softmax subtracts it in any case, and then does not overflow where the spelled-out form
// does. The quotient may be a product with the reciprocal of the sum. Holds before: f32, f16 or bf16; maximum and sum
// are over the same single axis with keepdims; nothing outside reads the exponentials; the device has a kernel for
// softmax.
#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// The axis (counted from the front) of a reduction over one axis that stays as an extent of 1.
std::optional<int64_t> single_axis(const Graph& graph, const Node& reduction) {
  const Shape& shape = graph.type(reduction.input(0)).shape();
  const auto axes = integer_constants(graph, reduction.input(1));
  if (!axes || axes->size() != 1 || !shape.has_rank() || !reduction.attributes().flag("keepdims")) return std::nullopt;
  return axes->front() < 0 ? axes->front() + shape.rank() : axes->front();
}

// Exponentials and what they are divided by.
struct Quotient {
  ValueId exponentials;
  const Node* sum;
};

std::optional<Quotient> read_quotient(const Graph& graph, const Node& node) {
  if (&node.op() == &div_def()) {
    const Node* sum = made_once_by(graph, node.input(1), reduce_sum_def());
    return sum ? std::optional(Quotient{node.input(0), sum}) : std::nullopt;
  }
  if (&node.op() != &mul_def()) return std::nullopt;
  for (const size_t slot : {0, 1}) {
    const Node* inverse = made_once_by(graph, node.input(slot), reciprocal_def());
    const Node* sum = inverse ? made_once_by(graph, inverse->input(0), reduce_sum_def()) : nullptr;
    if (sum) return Quotient{node.input(1 - slot), sum};
  }
  return std::nullopt;
}

// x when `v` is x - max(x) along `axis`, else `v`.
ValueId without_maximum(const Graph& graph, ValueId v, int64_t axis) {
  const Node* sub = made_once_by(graph, v, sub_def());
  const Node* max = sub ? made_once_by(graph, sub->input(1), reduce_max_def()) : nullptr;
  return max && max->input(0) == sub->input(0) && single_axis(graph, *max) == axis ? sub->input(0) : v;
}

bool fuse(Graph& graph, const PassContext& context, NodeId id) {
  const ValueId result = graph.node(id).output(0);
  if (!is_short_float(graph.type(result))) return false;
  const auto quotient = read_quotient(graph, graph.node(id));
  if (!quotient || quotient->sum->input(0) != quotient->exponentials) return false;
  const auto axis = single_axis(graph, *quotient->sum);
  const Node* exp = made_by(graph, quotient->exponentials, exp_def());
  if (!axis || !exp || num_reads(graph, quotient->exponentials) != 2) return false;
  const ValueId x = without_maximum(graph, exp->input(0), *axis);
  const NodeId softmax = graph.add_node(softmax_def(), {x}, {{"axis", *axis}});
  if (!context.expects_kernel || !context.expects_kernel(graph, softmax)) {
    graph.erase_node(softmax);
    return false;
  }
  replace_pattern(graph, result, graph.node(softmax).output(0));
  return true;
}

}  // namespace

bool fuse_softmax(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    const OpDef* op = graph.is_live(id) ? &graph.node(id).op() : nullptr;
    if (op == &div_def() || op == &mul_def()) changed = fuse(graph, context, id) || changed;
  }
  return changed;
}

}  // namespace autograph

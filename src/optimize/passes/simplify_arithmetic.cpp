// simplify_arithmetic: removes arithmetic that changes nothing, and steps that a later one makes needless.
//
//   x + 0, x - 0, x * 1, x / 1, x ^ 1             x, when the constant adds no dims
//   relu(relu(x)), relu of abs, sigmoid, ...      the inner one; |x| of a signed integer may wrap below 0
//   abs(abs(x)), neg(neg(x))                      the inner one; x
//   cast(cast(x, B), C)                           cast(x, C), or x when that is its dtype; B holds every value of x
//
// The results are the same numbers; only x + 0 keeps the sign of -0, which the sum would lose.
#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool same_rank(const Graph& graph, ValueId a, ValueId b) {
  const Shape& x = graph.type(a).shape();
  const Shape& y = graph.type(b).shape();
  return x.has_rank() && y.has_rank() && x.rank() == y.rank();
}

// The constant with which an op gives back its other input, and whether it may stand on the left.
struct Neutral {
  const OpDef* op;
  double constant;
  bool on_both_sides;
};

ValueId neutral_operand(const Graph& graph, const Node& node) {
  const Neutral table[] = {{&add_def(), 0, true},
                           {&sub_def(), 0, false},
                           {&mul_def(), 1, true},
                           {&div_def(), 1, false},
                           {&pow_def(), 1, false}};
  for (const Neutral& row : table) {
    if (row.op != &node.op()) continue;
    for (const size_t slot : {1, 0}) {
      const bool may_stand_here = slot == 1 || row.on_both_sides;
      if (!may_stand_here || scalar_constant(graph, node.input(slot)) != row.constant) continue;
      const ValueId x = node.input(1 - slot);
      if (same_rank(graph, x, node.output(0))) return x;
    }
  }
  return {};
}

bool made_by_any(const Graph& graph, ValueId v, std::initializer_list<const OpDef*> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](const OpDef* op) { return made_by(graph, v, *op) != nullptr; });
}

// What a chain of two gives, when that is a value already there.
ValueId needless_step(const Graph& graph, const Node& node) {
  const ValueId x = node.input(0);
  if (&node.op() == &relu_def()) {
    bool never_negative = made_by_any(
        graph, x, {&relu_def(), &sigmoid_def(), &hard_sigmoid_def(), &softmax_def(), &exp_def(), &sqrt_def()});
    // The least signed integer has no positive counterpart: its abs is itself.
    if (!dtypes::kSigned.contains(graph.type(x).dtype())) never_negative |= made_by_any(graph, x, {&abs_def()});
    return never_negative ? x : ValueId{};
  }
  if (&node.op() == &abs_def()) return made_by_any(graph, x, {&abs_def(), &relu_def()}) ? x : ValueId{};
  const Node* inner = &node.op() == &neg_def() ? made_by(graph, x, neg_def()) : nullptr;
  return inner ? inner->input(0) : ValueId{};
}

// Exact integers up to 2^bits: of a dtype's values, and of the integers that a float can hold.
int mantissa_bits(DType dtype) {
  switch (dtype) {
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::f32: return 24;
    case DType::f64: return 53;
    default: return static_cast<int>(8 * element_size(dtype)) - (dtypes::kSigned.contains(dtype) ? 1 : 0);
  }
}

// Does `to` hold every value of `from`, so that a cast there and on to a third dtype is a cast to that one?
bool holds_all(DType from, DType to) {
  if (from == to) return true;
  if (!dtypes::kNumeric.contains(from) || !dtypes::kNumeric.contains(to)) return false;
  const bool to_float = dtypes::kFloat.contains(to);
  if (dtypes::kFloat.contains(from)) {
    return to_float && element_size(to) > element_size(from);
  }
  if (to_float) return false;  // from there on to integers other rules would apply
  const bool drops_sign = dtypes::kSigned.contains(from) && !dtypes::kSigned.contains(to);
  return !drops_sign && mantissa_bits(to) >= mantissa_bits(from);
}

bool simplify_cast(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  const Node* inner = made_by(graph, node.input(0), cast_def());
  if (!inner) return false;
  const ValueId x = inner->input(0);
  const DType from = graph.type(x).dtype();
  const DType to = graph.type(node.output(0)).dtype();
  if (!holds_all(from, graph.type(node.input(0)).dtype())) return false;
  const ValueId result = node.output(0);
  ValueId replacement = x;
  if (from != to) replacement = graph.node(graph.add_node(cast_def(), {x}, node.attributes())).output(0);
  replace_pattern(graph, result, replacement);
  return true;
}

bool simplify(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (&node.op() == &cast_def()) return simplify_cast(graph, id);
  ValueId same = neutral_operand(graph, node);
  if (!same.is_valid()) same = needless_step(graph, node);
  if (!same.is_valid()) return false;
  replace_pattern(graph, node.output(0), same);
  return true;
}

}  // namespace

bool simplify_arithmetic(Graph& graph, PassContext&) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (graph.is_live(id) && !graph.node(id).inputs().empty()) changed = simplify(graph, id) || changed;
  }
  return changed;
}

}  // namespace autograph

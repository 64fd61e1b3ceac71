#include "optimize/match.h"

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"

namespace autograph {
namespace {

constexpr int kMaxDepth = 8;         // of arithmetic between a value and the x of a formula
constexpr double kFewDigits = 1e-4;  // 0.7979 for sqrt(2 / pi)

// The two inputs of a node as constant and other; nothing unless exactly one is a scalar constant.
struct WithScalar {
  double scalar;
  ValueId other;
  bool scalar_first;
};

std::optional<WithScalar> with_scalar(const Graph& graph, const Node& node) {
  const auto first = scalar_constant(graph, node.input(0));
  const auto second = scalar_constant(graph, node.input(1));
  if (first.has_value() == second.has_value()) return std::nullopt;
  if (first) return WithScalar{*first, node.input(1), true};
  return WithScalar{*second, node.input(0), false};
}

// The node that makes `v`, when nothing but the pattern reads it.
const Node* inner_node(const Graph& graph, ValueId v) {
  const NodeId producer = graph.value(v).producer();
  if (!producer.is_valid() || graph.value(v).slot() != 0 || num_reads(graph, v) != 1) return nullptr;
  return &graph.node(producer);
}

// One step of affine_of(): the formula in terms of the input of `node`.
std::optional<Affine> step(const Graph& graph, const Node& node, const Affine& outer) {
  if (&node.op() == &neg_def()) return Affine{node.input(0), -outer.factor, outer.offset};
  const bool is_sub = &node.op() == &sub_def();
  const bool is_div = &node.op() == &div_def();
  if (&node.op() != &add_def() && &node.op() != &mul_def() && !is_sub && !is_div) return std::nullopt;
  const auto input = with_scalar(graph, node);
  if (!input) return std::nullopt;
  const double c = input->scalar;
  if (is_div) {
    if (input->scalar_first || c == 0) return std::nullopt;
    return Affine{input->other, outer.factor / c, outer.offset};
  }
  if (&node.op() == &mul_def()) return Affine{input->other, outer.factor * c, outer.offset};
  if (!is_sub) return Affine{input->other, outer.factor, outer.offset + outer.factor * c};
  if (input->scalar_first) return Affine{input->other, -outer.factor, outer.offset + outer.factor * c};
  return Affine{input->other, outer.factor, outer.offset - outer.factor * c};
}

bool is_unread(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(), [&](ValueId v) { return num_reads(graph, v) == 0; });
}

}  // namespace

const Node* made_by(const Graph& graph, ValueId v, const OpDef& op) {
  if (!v.is_valid()) return nullptr;
  const NodeId producer = graph.value(v).producer();
  if (!producer.is_valid() || graph.value(v).slot() != 0) return nullptr;
  const Node& node = graph.node(producer);
  return &node.op() == &op ? &node : nullptr;
}

size_t num_reads(const Graph& graph, ValueId v) { return graph.value(v).uses().size() + graph.num_output_uses(v); }

const Node* made_once_by(const Graph& graph, ValueId v, const OpDef& op) {
  const Node* node = made_by(graph, v, op);
  return node && num_reads(graph, v) == 1 ? node : nullptr;
}

std::optional<double> scalar_constant(const Graph& graph, ValueId v) {
  if (!v.is_valid() || !graph.value(v).is_constant()) return std::nullopt;
  const Tensor& tensor = graph.value(v).constant();
  const DType dtype = tensor.dtype();
  if (tensor.num_elements() != 1 || !dtypes::kNumeric.contains(dtype)) return std::nullopt;
  return tensor.to_f64().front();
}

std::optional<std::vector<int64_t>> integer_constants(const Graph& graph, ValueId v) {
  if (!v.is_valid() || !graph.value(v).is_constant()) return std::nullopt;
  const Tensor& tensor = graph.value(v).constant();
  if (!dtypes::kIndex.contains(tensor.dtype())) return std::nullopt;
  return tensor.to_i64();
}

bool same_tensor_type(const Type& a, const Type& b) {
  if (!a.is_tensor() || !b.is_tensor() || a.dtype() != b.dtype()) return false;
  if (!a.shape().has_rank() || !b.shape().has_rank() || a.shape().rank() != b.shape().rank()) return false;
  for (int64_t axis = 0; axis < a.shape().rank(); ++axis) {
    if (!a.shape()[axis].same_as(b.shape()[axis])) return false;
  }
  return true;
}

bool is_short_float(const Type& type) {
  return type.is_tensor() && DTypeSet{DType::f32, DType::f16, DType::bf16}.contains(type.dtype());
}

bool is_close(double actual, double expected, DType dtype) {
  double tolerance = kFewDigits;
  if (dtype == DType::f16) tolerance = 1e-3;
  if (dtype == DType::bf16) tolerance = 8e-3;
  return std::fabs(actual - expected) <= tolerance * std::fabs(expected);
}

Affine affine_of(const Graph& graph, ValueId v) {
  Affine formula{v};
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    const Node* node = inner_node(graph, formula.x);
    const auto next = node ? step(graph, *node, formula) : std::nullopt;
    if (!next) break;
    formula = *next;
  }
  return formula;
}

Provenance erase_unread(Graph& graph, NodeId node) {
  Provenance origins;
  std::vector<NodeId> pending{node};
  while (!pending.empty()) {
    const NodeId id = pending.back();
    pending.pop_back();
    if (!graph.is_live(id) || !is_unread(graph, graph.node(id))) continue;
    const std::vector<ValueId> inputs = graph.node(id).inputs();
    origins = Provenance::merged(graph.node(id).provenance(), origins);
    graph.erase_node(id);
    for (const ValueId v : inputs) {
      if (v.is_valid() && graph.is_live(v) && graph.value(v).producer().is_valid()) {
        pending.push_back(graph.value(v).producer());
      }
    }
  }
  return origins;
}

void replace_pattern(Graph& graph, ValueId root, ValueId replacement, NodeId heir) {
  const NodeId old_node = graph.value(root).producer();
  const NodeId new_node = heir.is_valid() ? heir : graph.value(replacement).producer();
  if (graph.value(replacement).name().empty()) graph.set_value_name(replacement, graph.value(root).name());
  graph.replace_uses(root, replacement);
  if (!old_node.is_valid()) return;
  const Provenance origins = erase_unread(graph, old_node);
  if (!new_node.is_valid()) return;
  graph.set_provenance(new_node, Provenance::merged(origins, graph.node(new_node).provenance()));
}

}  // namespace autograph

#include "optimize/match.h"

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "ops/defs.h"
#include "optimize/pass.h"

namespace autograph {
namespace {

constexpr double kFewDigits = 1e-4;     // 0.7979 for sqrt(2 / pi)
constexpr size_t kMaxWeightNodes = 64;  // looked at to tell a weight; the way back to an input is longer

}  // namespace

const Node* made_by(const Graph& graph, ValueId v, const OpDef& op) {
  if (!v.is_valid()) return nullptr;
  const NodeId producer = graph.value(v).producer();
  if (!producer.is_valid() || graph.value(v).slot() != 0) return nullptr;
  const Node& node = graph.node(producer);
  return &node.op() == &op ? &node : nullptr;
}

bool is_one_of(const OpDef& op, std::initializer_list<const OpDef*> ops) {
  return std::find(ops.begin(), ops.end(), &op) != ops.end();
}

size_t num_reads(const Graph& graph, ValueId v) { return graph.value(v).uses().size() + graph.num_output_uses(v); }

const Node* made_once_by(const Graph& graph, ValueId v, const OpDef& op) {
  const Node* node = made_by(graph, v, op);
  return node && num_reads(graph, v) == 1 ? node : nullptr;
}

NodeId only_reader(const Graph& graph, ValueId v) {
  const bool is_alone = num_reads(graph, v) == 1 && !graph.value(v).uses().empty();
  return is_alone ? graph.value(v).uses().front().node : NodeId{};
}

const Tensor* constant_f32(const Graph& graph, ValueId v) {
  if (!v.is_valid() || !graph.value(v).is_constant() || graph.type(v).dtype() != DType::f32) return nullptr;
  return &graph.value(v).constant();
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

bool is_weight(const Graph& graph, ValueId v) {
  if (graph.value(v).is_constant()) return true;
  const NodeId producer = graph.value(v).producer();
  return producer.is_valid() && is_weight_only(graph, producer);
}

bool is_weight_only(const Graph& graph, NodeId id) {
  std::vector<NodeId> seen{id};
  for (size_t next = 0; next < seen.size(); ++next) {
    if (next == kMaxWeightNodes) return false;
    const Node& node = graph.node(seen[next]);
    if (!node.op().traits.pure || node.op().traits.random) return false;
    for (const ValueId input : node.inputs()) {
      if (!input.is_valid() || graph.value(input).is_constant()) continue;
      const NodeId producer = graph.value(input).producer();
      if (!producer.is_valid()) return false;  // an input or a state
      if (std::find(seen.begin(), seen.end(), producer) == seen.end()) seen.push_back(producer);
    }
  }
  return true;
}

bool same_extents(const Shape& a, const Shape& b) {
  if (!a.has_rank() || !b.has_rank() || a.rank() != b.rank()) return false;
  for (int64_t axis = 0; axis < a.rank(); ++axis) {
    if (!a[axis].same_as(b[axis])) return false;
  }
  return true;
}

bool same_tensor_type(const Type& a, const Type& b) {
  return a.is_tensor() && b.is_tensor() && a.dtype() == b.dtype() && same_extents(a.shape(), b.shape());
}

bool is_short_float(const Type& type) {
  return type.is_tensor() && DTypeSet{DType::f32, DType::f16, DType::bf16}.contains(type.dtype());
}

bool is_narrow_integer(DType dtype) {
  constexpr DTypeSet kNarrow{DType::i8, DType::u8, DType::i4, DType::u4, DType::i2, DType::u2};
  return kNarrow.contains(dtype);
}

bool is_close(double actual, double expected, DType dtype) {
  double tolerance = kFewDigits;
  if (dtype == DType::f16) tolerance = 1e-3;
  if (dtype == DType::bf16) tolerance = 8e-3;
  return std::fabs(actual - expected) <= tolerance * std::fabs(expected);
}

ValueId reshaped(Graph& graph, ValueId v, const Dims& dims) {
  if (graph.type(v).is_static() && graph.type(v).shape().static_dims() == dims) return v;
  const ValueId shape = graph.add_constant(Tensor::vector(dims));
  return graph.node(graph.add_node(reshape_def(), {v, shape}, {{"allowzero", int64_t{1}}})).output(0);
}

bool keep_if_expected(Graph& graph, const PassContext& context, NodeId added) {
  if (context.expects_kernel && context.expects_kernel(graph, added)) return true;
  erase_unread(graph, added);
  return false;
}

void replace_value(Graph& graph, ValueId from, ValueId to) {
  const NodeId old_node = graph.value(from).producer();
  const NodeId new_node = graph.value(to).producer();
  if (old_node.is_valid() && new_node.is_valid()) {
    graph.set_provenance(new_node,
                         Provenance::merged(graph.node(new_node).provenance(), graph.node(old_node).provenance()));
  }
  if (graph.value(to).name().empty()) graph.set_value_name(to, graph.value(from).name());
  graph.replace_uses(from, to);
}

void replace_node(Graph& graph, NodeId node, const std::vector<ValueId>& results) {
  for (size_t k = 0; k < results.size(); ++k) replace_value(graph, graph.node(node).output(k), results[k]);
  graph.erase_node(node);
}

bool is_unread(const Graph& graph, const Node& node) {
  return std::all_of(node.outputs().begin(), node.outputs().end(), [&](ValueId v) { return num_reads(graph, v) == 0; });
}

bool rewrite_nodes(Graph& graph, FunctionRef<bool(NodeId)> rewrite) {
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (graph.is_live(id)) changed = rewrite(id) || changed;
  }
  if (changed) graph.erase_dead();
  return changed;
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

#include "optimize/search/fused_cost.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "ops/defs.h"

namespace autograph {
namespace {

// What is left of an elementwise op's own time where its operand and result stay in registers or in the first cache:
// the arithmetic.
constexpr double kArithmeticShare = 0.1;
// What placing parts in one tensor leaves: nothing but a step.
constexpr double kPlacedUs = 0.2;

bool is_elementwise(const Node& node) {
  const Traits& traits = node.op().traits;
  return traits.elementwise && traits.pure && !traits.view && node.outputs().size() == 1;
}

// Does it take any number of operands? The kernels of convolutions and products compute nothing such behind them.
bool is_variadic(const Node& node) {
  return !node.op().inputs.empty() && node.op().inputs.back().arity == Arity::variadic;
}

// Will `v` be computed together with `reader`, the one node that reads it, whose result has type `type`?
bool is_absorbed(const Graph& graph, ValueId v, const Node& reader, const Type& type) {
  if (!v.is_valid()) return false;
  const Value& value = graph.value(v);
  if (!value.producer().is_valid() || value.uses().size() != 1 || graph.num_output_uses(v) > 0) return false;
  if (value.type() != type) return false;
  const Node& producer = graph.node(value.producer());
  return (producer.op().traits.anchor && !is_variadic(reader)) || is_elementwise(producer);
}

bool is_one_element(const Type& type) { return type.is_static() && type.shape().num_elements().value_or(0) == 1; }

// The tensors that a node moves besides the one that stays in registers, as a share of all that it would move alone.
double moved_share(const Graph& graph, const Node& node) {
  double tensors = 1;  // the result
  for (const ValueId v : node.inputs()) tensors += v.is_valid() && !is_one_element(graph.type(v)) ? 1 : 0;
  return std::max(0.0, tensors - 2) / tensors;
}

// Is everything outside `axis` one step, so that parts along it lie one behind the other?
bool is_outermost(const Shape& shape, int64_t axis) {
  if (axis < 0) axis += shape.rank();
  for (int64_t i = 0; i < axis; ++i) {
    if (shape[i] != Dim(1)) return false;
  }
  return true;
}

bool is_placed_concat(const Graph& graph, const Node& node) {
  const Type& whole = graph.type(node.output(0));
  if (!whole.is_static() || !is_outermost(whole.shape(), node.attributes().get<int64_t>("axis"))) return false;
  return std::all_of(node.inputs().begin(), node.inputs().end(), [&](ValueId v) {
    const NodeId producer = graph.value(v).producer();
    if (!producer.is_valid() || graph.node(producer).op().traits.view) return false;
    return std::count(node.inputs().begin(), node.inputs().end(), v) == 1;
  });
}

// The pieces may lie in a view of what a kernel made, too. Behind one view alone: further back changes are not noticed.
bool is_placed_split(const Graph& graph, const Node& node) {
  const Type& whole = graph.type(node.input(0));
  NodeId producer = graph.value(node.input(0)).producer();
  if (producer.is_valid() && is_true_view(graph, producer)) {
    producer = graph.value(graph.node(producer).input(0)).producer();
  }
  if (!whole.is_static() || !producer.is_valid() || graph.node(producer).op().traits.view) return false;
  return is_outermost(whole.shape(), node.attributes().get_or<int64_t>("axis", 0));
}

}  // namespace

double FusedCost::node_us(const Graph& graph, NodeId id) {
  const double alone_us = model_.node_us(graph, id, model_.threads());
  if (alone_us <= 0) return 0;
  const Node& node = graph.node(id);
  const bool is_placed = model_.places_parts() && ((&node.op() == &concat_def() && is_placed_concat(graph, node)) ||
                                                   (&node.op() == &split_def() && is_placed_split(graph, node)));
  if (is_placed) return std::min(alone_us, kPlacedUs);
  if (!is_elementwise(node)) return alone_us;
  const Type& type = graph.type(node.output(0));
  const bool absorbed = std::any_of(node.inputs().begin(), node.inputs().end(),
                                    [&](ValueId v) { return is_absorbed(graph, v, node, type); });
  return absorbed ? alone_us * std::max(kArithmeticShare, moved_share(graph, node)) : alone_us;
}

KernelLoad FusedCost::node_load(const Graph& graph, NodeId id, double us) {
  if (us <= 0) return {};
  KernelLoad load = model_.node_load(graph, id).value_or(KernelLoad{});
  // Work that is done by another kernel needs no start of its own.
  if (load.work_us > 0 && us < load.start_us + load.work_us) {
    load.start_us = 0;
    load.work_us = us;
  }
  return load;
}

double FusedCost::sum_us(double us, const KernelLoad& load) const {
  return shared_streams_ < 2 ? us : std::max(us / shared_streams_, load.area_us());
}

}  // namespace autograph

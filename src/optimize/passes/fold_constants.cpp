// fold_constants: computes nodes whose inputs are all constants, once, with the reference implementation.
//
// Results larger than PassContext::max_folded_bytes stay nodes: an Expand of a scalar to gigabytes is cheaper to keep.
// Impure and random nodes, and those with an evaluate function, stay too. A node whose reference throws stays: the
// error belongs to the run.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "graph/run_reference.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

bool can_fold(const Graph& graph, const Node& node, int64_t max_bytes) {
  const OpDef& op = node.op();
  if (!op.traits.pure || op.traits.random || op.evaluate || (!op.reference && !op.scalar)) return false;
  const auto is_constant = [&](ValueId v) { return !v.is_valid() || graph.value(v).is_constant(); };
  if (!std::all_of(node.inputs().begin(), node.inputs().end(), is_constant)) return false;
  int64_t input_bytes = 0;
  for (const ValueId v : node.inputs()) {
    if (v.is_valid()) input_bytes += static_cast<int64_t>(graph.value(v).constant().size_bytes());
  }
  for (const ValueId v : node.outputs()) {
    if (!graph.type(v).is_static()) return false;
    // Beyond the limit it may still shrink its inputs.
    const double bytes = static_cast<double>(element_size(graph.type(v).dtype()));
    double total = bytes;
    for (const Dim& dim : graph.type(v).shape().dims()) total *= static_cast<double>(dim.value());
    if (total > static_cast<double>(std::max(max_bytes, input_bytes))) return false;
  }
  return true;
}

bool fold(Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  std::vector<Tensor> inputs;
  std::vector<Type> types;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.value(v).constant() : Tensor());
  for (const ValueId v : node.outputs()) types.push_back(graph.type(v));
  std::vector<Tensor> results;
  try {
    results = run_reference(node.op(), node.attributes(), inputs, types);
  } catch (const UserError&) {
    return false;
  }
  const std::vector<ValueId> outputs = node.outputs();
  for (size_t k = 0; k < outputs.size(); ++k) {
    const ValueId constant = graph.add_constant(std::move(results[k]));
    replace_value(graph, outputs[k], constant);
  }
  graph.erase_node(id);
  return true;
}

}  // namespace

// Values that become known sharpen types further down, or show that a node can never run: then infer throws the same
// error here that the run would meet.
bool fold_constants(Graph& graph, PassContext& context) {
  infer_types(graph);
  bool changed = false;
  for (const NodeId id : graph.topological_order()) {
    if (can_fold(graph, graph.node(id), context.max_folded_bytes)) changed = fold(graph, id) || changed;
  }
  if (!changed) return false;
  graph.erase_dead();
  infer_types(graph);
  return true;
}

}  // namespace autograph

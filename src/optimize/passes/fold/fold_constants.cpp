// fold_constants: computes nodes whose inputs are all constants, once, by PassContext::compute; and what inference
// knows without them: the shape of a tensor of known extents, and the arithmetic on it.
//
// Results larger than PassContext::max_folded_bytes stay nodes: an Expand of a scalar to gigabytes is cheaper to keep.
// Not so dequantized weights of products, which every run would compute again.
// Impure and random nodes, and those with an evaluate function, stay too. A node whose reference throws stays: the
// error belongs to the run.
//
// Dequantized weights of products stay for use_integers and use_block_matmul as long as those have not run:
// fold_constants_before_integers.
#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/verify.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "optimize/match.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// The right side of a product whose left side is not constant, perhaps transposed before?
bool is_product_weight(const Graph& graph, ValueId v) {
  const auto& uses = graph.value(v).uses();
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
    const Node& reader = graph.node(use.node);
    if (&reader.op() == &transpose_def()) return is_product_weight(graph, reader.output(0));
    return use.slot == 1 && reader.op().traits.anchor && !graph.value(reader.inputs()[0]).is_constant();
  });
}

bool is_dequantized_weight(const Graph& graph, const Node& node) {
  return &node.op() == &dequantize_linear_def() && is_product_weight(graph, node.output(0));
}

// One of numbers that kernels take as they are.
bool is_quantized_weight(const Graph& graph, const Node& node) {
  if (!is_dequantized_weight(graph, node)) return false;
  const ValueId q = node.input(0);
  return q.is_valid() && is_narrow_integer(graph.type(q).dtype());
}

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
    if (is_dequantized_weight(graph, node)) continue;
    // Beyond the limit it may still shrink its inputs.
    const double bytes = static_cast<double>(element_size(graph.type(v).dtype()));
    double total = bytes;
    for (const Dim& dim : graph.type(v).shape().dims()) total *= static_cast<double>(dim.value());
    if (total > static_cast<double>(std::max(max_bytes, input_bytes))) return false;
  }
  return true;
}

void replace_by_constants(Graph& graph, NodeId id, std::vector<Tensor> results) {
  std::vector<ValueId> constants;
  for (Tensor& result : results) constants.push_back(graph.add_constant(std::move(result)));
  replace_node(graph, id, constants);
}

bool fold(Graph& graph, NodeId id, const PassContext& context) {
  const Node& node = graph.node(id);
  std::vector<Tensor> inputs;
  std::vector<Type> types;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? graph.value(v).constant() : Tensor());
  for (const ValueId v : node.outputs()) types.push_back(graph.type(v));
  std::vector<Tensor> results;
  try {
    results = context.compute ? context.compute(node.op(), node.attributes(), inputs, types)
                              : run_reference(node.op(), node.attributes(), inputs, types);
  } catch (const UserError&) {
    return false;
  }
  replace_by_constants(graph, id, std::move(results));
  return true;
}

// Replaces a node whose outputs inference knows, such as the shape of a tensor of known extents.
bool fold_known(Graph& graph, NodeId id, const KnownValues& known) {
  std::vector<Tensor> results;
  for (const ValueId v : graph.node(id).outputs()) {
    const auto value = known.find(v.index);
    if (value == known.end()) return false;
    results.push_back(value->second);
  }
  replace_by_constants(graph, id, std::move(results));
  return true;
}

// Would inference tell nothing new? All types are known, and no node gives elements that it knows without those of
// another: such nodes read constants or shapes alone.
bool has_nothing_to_infer(const Graph& graph) {
  const auto is_static = [&](ValueId v) { return graph.type(v).is_static(); };
  const auto is_constant = [&](ValueId v) { return !v.is_valid() || graph.value(v).is_constant(); };
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!std::all_of(node.outputs().begin(), node.outputs().end(), is_static)) return false;
    if (node.op().traits.reads_shape_only) return false;
    if (std::all_of(node.inputs().begin(), node.inputs().end(), is_constant)) return false;
  }
  return true;
}

bool fold_all(Graph& graph, const PassContext& context, bool keep_quantized_weights) {
  // To infer takes longer than most passes do.
  if (has_nothing_to_infer(graph)) return false;
  const KnownValues known = infer_types(graph);
  bool changed = false, has_news = false;
  for (const NodeId id : graph.topological_order()) {
    if (keep_quantized_weights && is_quantized_weight(graph, graph.node(id))) continue;
    const bool was_known = fold_known(graph, id, known);
    const bool is_computed =
        !was_known && can_fold(graph, graph.node(id), context.max_folded_bytes) && fold(graph, id, context);
    changed = changed || was_known || is_computed;
    has_news = has_news || is_computed;
  }
  if (!changed) return false;
  graph.erase_dead();
  // Types follow already from what inference knew.
  if (has_news) infer_types(graph);
  return true;
}

}  // namespace

// Values that become known sharpen types further down, or show that a node can never run: then infer throws the same
// error here that the run would meet.
bool fold_constants(Graph& graph, PassContext& context) { return fold_all(graph, context, false); }

bool fold_constants_before_integers(Graph& graph, PassContext& context) { return fold_all(graph, context, true); }

}  // namespace autograph

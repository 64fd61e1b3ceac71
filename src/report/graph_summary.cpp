#include "report/graph_summary.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "autograph/seeded_inputs.h"

namespace autograph {
namespace {

bool is_parameter(const Value& value) {
  const DType dtype = value.type().dtype();
  return dtype != DType::i64 && dtype != DType::boolean && dtype != DType::string;
}

bool all_static(const Graph& graph, const Node& node) {
  const auto is_static = [&](ValueId id) { return !id.is_valid() || graph.type(id).is_static(); };
  return std::all_of(node.inputs().begin(), node.inputs().end(), is_static) &&
         std::all_of(node.outputs().begin(), node.outputs().end(), is_static);
}

void add_cost(const Graph& graph, const Node& node, GraphSummary& summary) {
  if (!all_static(graph, node)) {
    ++summary.nodes_without_cost;
    return;
  }
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  for (const ValueId id : node.inputs()) inputs.push_back(id.is_valid() ? graph.type(id) : Type());
  for (const ValueId id : node.outputs()) outputs.push_back(graph.type(id));
  const OpCost cost = cost_of(node.op(), {node.attributes(), inputs, outputs});
  summary.flops += cost.flops;
  summary.bytes += cost.bytes;
}

void add(const Graph& graph, GraphSummary& summary) {
  for (const ValueId id : graph.constants()) {
    const Value& value = graph.value(id);
    if (!is_parameter(value)) continue;
    summary.parameters += value.constant().num_elements();
    summary.parameter_bytes += static_cast<int64_t>(value.constant().size_bytes());
  }
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    ++summary.nodes;
    ++summary.ops[display_name(node)];
    add_cost(graph, node, summary);
    for (const auto& [name, value] : node.attributes()) {
      if (const GraphRef* nested = std::get_if<GraphRef>(&value)) add(**nested, summary);
    }
  }
}

double static_bytes(const Type& type) {
  if (!type.is_static()) return 0;
  return static_cast<double>(*type.shape().num_elements()) * static_cast<double>(element_size(type.dtype()));
}

void add_io(const Graph& graph, GraphSummary& summary) {
  for (const ValueId id : graph.inputs()) summary.io_bytes += static_bytes(graph.type(id));
  for (const ValueId id : graph.outputs()) summary.io_bytes += static_bytes(graph.type(id));
}

bool inputs_are_static(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId id) { return graph.type(id).is_static(); });
}

// Can numbers be put in for all extents of the inputs?
bool can_bind(const Graph& graph) {
  return std::all_of(graph.inputs().begin(), graph.inputs().end(),
                     [&](ValueId id) { return graph.type(id).is_tensor() && graph.type(id).shape().has_rank(); });
}

}  // namespace

std::string display_name(const Node& node) {
  const OpDef& op = node.op();
  const bool has_onnx_name = !op.onnx.empty() && !op.onnx[0].name.empty();
  return std::string(has_onnx_name ? op.onnx[0].name : op.name);
}

GraphSummary summarize(const Graph& graph) {
  GraphSummary summary;
  if (inputs_are_static(graph) || !can_bind(graph)) {
    add(graph, summary);
    add_io(graph, summary);
    return summary;
  }
  try {
    const Graph bound = bind_inputs(graph);
    add(bound, summary);
    add_io(bound, summary);
  } catch (const UserError&) {
    // The model does not admit the extents chosen for its symbols: count what can be counted without.
    summary = {};
    add(graph, summary);
    add_io(graph, summary);
  }
  return summary;
}

}  // namespace autograph

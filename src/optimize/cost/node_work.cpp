#include "optimize/cost/node_work.h"

#include <algorithm>
#include <vector>

namespace autograph {
namespace {

// The types of `values`; false when one has an extent that is not known or is no tensor.
bool static_types(const Graph& graph, const std::vector<ValueId>& values, std::vector<Type>& types) {
  for (const ValueId v : values) {
    types.push_back(v.is_valid() ? graph.type(v) : Type());
    if (v.is_valid() && !types.back().is_static()) return false;
  }
  return true;
}

// The op whose kernel does the work of a node.
const OpDef& working_op(const Node& node) {
  const GraphRef* body = nullptr;
  for (const auto& [name, value] : node.attributes()) {
    if (const auto* graph = std::get_if<GraphRef>(&value)) body = graph;
  }
  if (!body || node.op().traits.control_flow) return node.op();
  const std::vector<NodeId> nodes = (*body)->nodes();
  const auto anchor =
      std::find_if(nodes.begin(), nodes.end(), [&](NodeId id) { return (*body)->node(id).op().traits.anchor; });
  return anchor == nodes.end() ? node.op() : (*body)->node(*anchor).op();
}

}  // namespace

NodeWork node_work(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  NodeWork work;
  work.op = &working_op(node);
  std::vector<Type> inputs;
  std::vector<Type> outputs;
  if (!static_types(graph, node.inputs(), inputs) || !static_types(graph, node.outputs(), outputs)) return work;
  work.is_known = true;
  for (const Type& type : outputs) work.outputs += static_cast<double>(type.shape().num_elements().value_or(0));
  if (node.op().traits.reads_shape_only) return work;
  const CostContext context{node.attributes(), inputs, outputs};
  const OpCost cost = cost_of(node.op(), context);
  work.flops = cost.flops;
  work.bytes = cost.bytes;
  work.walk = walk_work(node.op(), context);
  return work;
}

}  // namespace autograph

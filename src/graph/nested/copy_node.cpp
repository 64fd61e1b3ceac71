#include "graph/nested/copy_node.h"

namespace autograph {
namespace {

std::vector<ValueId> copied_inputs(const Node& node, const std::vector<ValueId>& copies) {
  std::vector<ValueId> inputs;
  for (const ValueId v : node.inputs()) inputs.push_back(v.is_valid() ? copies[v.index] : ValueId{});
  return inputs;
}

NodeId enter(const Graph& to, NodeId copy, const std::vector<ValueId>& outputs, std::vector<ValueId>& copies) {
  for (size_t k = 0; k < outputs.size(); ++k) copies[outputs[k].index] = to.node(copy).output(k);
  return copy;
}

}  // namespace

NodeId copy_node(Graph& to, const Node& node, std::vector<ValueId>& copies) {
  std::vector<ValueId> outputs = node.outputs();  // adding a node may move the others
  NodeOptions options{node.provenance(), static_cast<int>(outputs.size())};
  const NodeId copy = to.add_node(node.op(), copied_inputs(node, copies), node.attributes(), std::move(options));
  return enter(to, copy, outputs, copies);
}

NodeId copy_node_typed(Graph& to, const Graph& from, const Node& node, std::vector<ValueId>& copies) {
  std::vector<ValueId> outputs = node.outputs();
  std::vector<Type> types;
  for (const ValueId v : outputs) types.push_back(from.type(v));
  const NodeId copy =
      to.add_node_typed(node.op(), copied_inputs(node, copies), node.attributes(), std::move(types), node.provenance());
  return enter(to, copy, outputs, copies);
}

}  // namespace autograph

#include "graph/nested/inline_graph.h"

#include "base/check.h"

namespace autograph {

std::vector<ValueId> inline_graph(Graph& graph, const Graph& body, const std::vector<ValueId>& inputs) {
  AG_CHECK(inputs.size() == body.inputs().size(), "expected {} values for the inputs of '{}', got {}",
           body.inputs().size(), body.name(), inputs.size());
  std::vector<ValueId> copy_of(body.value_capacity());
  for (size_t i = 0; i < inputs.size(); ++i) copy_of[body.inputs()[i].index] = inputs[i];
  for (const ValueId v : body.constants()) {
    copy_of[v.index] = graph.add_constant(body.value(v).constant(), body.value(v).name());
  }
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    std::vector<ValueId> node_inputs;
    for (const ValueId v : node.inputs()) node_inputs.push_back(v.is_valid() ? copy_of[v.index] : ValueId{});
    NodeOptions options{node.provenance(), static_cast<int>(node.outputs().size())};
    const NodeId copy = graph.add_node(node.op(), std::move(node_inputs), node.attributes(), std::move(options));
    for (size_t k = 0; k < node.outputs().size(); ++k) copy_of[node.output(k).index] = graph.node(copy).output(k);
  }
  std::vector<ValueId> outputs;
  for (const ValueId v : body.outputs()) outputs.push_back(copy_of[v.index]);
  return outputs;
}

}  // namespace autograph

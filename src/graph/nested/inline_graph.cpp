#include "graph/nested/inline_graph.h"

#include "base/check.h"
#include "graph/nested/copy_node.h"

namespace autograph {

std::vector<ValueId> inline_graph(Graph& graph, const Graph& body, const std::vector<ValueId>& inputs) {
  AG_CHECK(inputs.size() == body.inputs().size(), "expected {} values for the inputs of '{}', got {}",
           body.inputs().size(), body.name(), inputs.size());
  std::vector<ValueId> copy_of(body.value_capacity());
  for (size_t i = 0; i < inputs.size(); ++i) copy_of[body.inputs()[i].index] = inputs[i];
  for (const ValueId v : body.constants()) {
    copy_of[v.index] = graph.add_constant(body.value(v).constant(), body.value(v).name());
  }
  for (const NodeId id : body.topological_order()) copy_node(graph, body.node(id), copy_of);
  std::vector<ValueId> outputs;
  for (const ValueId v : body.outputs()) outputs.push_back(copy_of[v.index]);
  return outputs;
}

}  // namespace autograph

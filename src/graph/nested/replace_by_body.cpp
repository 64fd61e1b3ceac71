#include "graph/nested/replace_by_body.h"

#include "base/check.h"
#include "graph/nested/function_body.h"
#include "graph/nested/new_nodes.h"

namespace autograph {

void replace_by_body(Graph& graph, NodeId id) {
  const OpDef& op = graph.node(id).op();
  const Provenance provenance = graph.node(id).provenance();
  const Attributes attributes = graph.node(id).attributes();
  const std::vector<ValueId> outputs = graph.node(id).outputs();
  DecomposeContext context{graph, attributes, {}, outputs.size()};
  for (const ValueId input : graph.node(id).inputs()) {
    context.inputs.push_back(input.is_valid() ? Var(graph, input) : Var());
  }
  const size_t first_new = graph.node_capacity();
  const std::vector<Var> results = add_body(op, context);
  set_provenance_of_new(graph, first_new, provenance);
  AG_CHECK(results.size() >= outputs.size(), "[{}] decompose gave {} values, expected {}", op.name, results.size(),
           outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const bool used = !graph.value(outputs[k]).uses().empty() || graph.num_output_uses(outputs[k]) > 0;
    if (!used) continue;
    AG_CHECK(results[k].is_valid(), "[{}] decompose left out output {}, which is read", op.name, k);
    if (graph.value(results[k].id()).name().empty()) {
      graph.set_value_name(results[k].id(), graph.value(outputs[k]).name());
    }
    graph.replace_uses(outputs[k], results[k].id());
  }
  graph.erase_node(id);
}

}  // namespace autograph

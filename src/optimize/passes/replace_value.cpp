#include "optimize/passes/passes.h"

namespace autograph {

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

}  // namespace autograph

#include "optimize/cost/cost_model.h"

#include "autograph/op_def.h"

namespace autograph {

bool is_true_view(const Graph& graph, NodeId node) {
  const Node& view = graph.node(node);
  return view.op().traits.view && view.outputs().size() == 1 && view.input(0).is_valid() &&
         graph.type(view.input(0)).is_tensor();
}

}  // namespace autograph

#include "optimize/cost/cost_model.h"

#include <algorithm>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

namespace {

// Weights are folded before a search; what rules make of them since is a few nodes. The way back to an input is longer.
constexpr size_t kMaxNodes = 32;

}  // namespace

bool is_weight_only(const Graph& graph, NodeId node) {
  std::vector<NodeId> seen{node};
  for (size_t next = 0; next < seen.size(); ++next) {
    if (next == kMaxNodes) return false;
    const Node& at = graph.node(seen[next]);
    if (!at.op().traits.pure || at.op().traits.random) return false;
    for (const ValueId input : at.inputs()) {
      if (!input.is_valid() || graph.value(input).is_constant()) continue;
      const NodeId producer = graph.value(input).producer();
      if (!producer.is_valid()) return false;  // an input or a state
      if (std::find(seen.begin(), seen.end(), producer) == seen.end()) seen.push_back(producer);
    }
  }
  return true;
}

bool is_true_view(const Graph& graph, NodeId node) {
  const Node& view = graph.node(node);
  return view.op().traits.view && view.outputs().size() == 1 && view.input(0).is_valid() &&
         graph.type(view.input(0)).is_tensor();
}

}  // namespace autograph

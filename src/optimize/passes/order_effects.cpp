// order_effects: puts nodes with effects (collectives among them) behind each other by barriers, in the order of
// Graph::kept(), so that whatever passes, searches and schedules do, they happen in that order.
//
// The first input of a node comes out of a barrier that the first output of the node before it goes into. Nodes that
// follow each other already are left alone, so that the pass may run again.
#include <memory>
#include <utility>
#include <vector>

#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/nodes_behind.h"
#include "ops/defs.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

class EffectOrder {
 public:
  explicit EffectOrder(Graph& graph) : graph_(graph) {}

  bool run() {
    std::vector<NodeId> order;
    for (const NodeId id : graph_.topological_order()) {
      if (has_effect(graph_.node(id).op(), graph_.node(id).attributes())) order.push_back(id);
    }
    bool changed = false;
    for (size_t i = 1; i < order.size(); ++i) changed = put_behind(order[i], order[i - 1]) || changed;
    return changed;
  }

 private:
  bool put_behind(NodeId id, NodeId earlier) {
    const Node& node = graph_.node(id);
    const bool is_behind = nodes_behind(graph_, node.inputs(), [](ValueId) { return false; })[earlier.index] != 0;
    if (is_behind) return false;
    AG_CHECK_USER(node.input(0).is_valid(), UnsupportedError,
                  "[order_effects] {}: expected a first input, by which it is put behind {}", describe(graph_, id),
                  describe(graph_, earlier));
    const std::vector<ValueId> sides{node.input(0), graph_.node(earlier).output(0)};
    const std::vector<Type> types{graph_.type(sides[0]), graph_.type(sides[1])};
    const NodeId barrier = graph_.add_node_typed(barrier_def(), sides, {}, types, node.provenance());
    graph_.set_input(id, 0, graph_.node(barrier).output(0));
    return true;
  }

  Graph& graph_;
};

// Bodies, too: what later passes make of them keeps data in order, not the numbers of nodes.
bool order_bodies(Graph& graph, NodeId id, PassContext& context) {
  bool changed = false;
  const Attributes attributes = graph.node(id).attributes();  // a copy: they change
  for (const auto& [name, value] : attributes) {
    const auto* nested = std::get_if<GraphRef>(&value);
    if (!nested || !*nested) continue;
    auto body = std::make_shared<Graph>(**nested);
    if (!order_effects(*body, context)) continue;
    graph.set_attribute(id, name, GraphRef(std::move(body)));
    changed = true;
  }
  return changed;
}

}  // namespace

bool order_effects(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!node.op().traits.control_flow || !has_effect(node.op(), node.attributes())) continue;
    changed = order_bodies(graph, id, context) || changed;
  }
  return EffectOrder(graph).run() || changed;
}

}  // namespace autograph

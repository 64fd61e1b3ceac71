// order_effects: puts nodes with effects (collectives among them) behind each other by barriers, in the order in which
// they were added, so that whatever passes, searches and schedules do, they happen in that order.
//
// The first input of a node comes out of a barrier that the first output of the node before it goes into. Nodes that
// follow each other already are left alone, so that the pass may run again.
#include <memory>
#include <utility>
#include <vector>

#include "autograph/op_def.h"
#include "base/check.h"
#include "ops/defs.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

class EffectOrder {
 public:
  explicit EffectOrder(Graph& graph) : graph_(graph) {}

  bool run() {
    std::vector<NodeId> effects;
    for (const NodeId id : graph_.nodes()) {
      if (has_effect(graph_.node(id).op(), graph_.node(id).attributes())) effects.push_back(id);
    }
    if (effects.size() < 2) return false;
    is_seen_.assign(graph_.node_capacity(), 0);
    for (const NodeId id : effects) visit(id);
    bool changed = false;
    for (size_t i = 1; i < order_.size(); ++i) changed = put_behind(order_[i], order_[i - 1]) || changed;
    return changed;
  }

 private:
  struct Visit {
    NodeId node;
    size_t next_input = 0;
  };

  NodeId producer_of(ValueId v) const { return v.is_valid() ? graph_.value(v).producer() : NodeId{}; }

  // Appends the effects that `id` depends on, then itself.
  void visit(NodeId id) {
    std::vector<Visit> stack;
    const auto enter = [&](NodeId node) {
      if (!node.is_valid() || is_seen_[node.index]) return;
      is_seen_[node.index] = 1;
      stack.push_back({node});
    };
    enter(id);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const Node& node = graph_.node(top.node);
      if (top.next_input < node.inputs().size()) {
        enter(producer_of(node.inputs()[top.next_input++]));
        continue;
      }
      if (has_effect(node.op(), node.attributes())) order_.push_back(top.node);
      stack.pop_back();
    }
  }

  bool depends_on(NodeId id, NodeId other) const {
    std::vector<uint8_t> is_seen(graph_.node_capacity(), 0);
    std::vector<NodeId> work{id};
    while (!work.empty()) {
      const NodeId node = work.back();
      work.pop_back();
      if (node == other) return true;
      for (const ValueId v : graph_.node(node).inputs()) {
        const NodeId producer = producer_of(v);
        if (!producer.is_valid() || is_seen[producer.index]) continue;
        is_seen[producer.index] = 1;
        work.push_back(producer);
      }
    }
    return false;
  }

  bool put_behind(NodeId id, NodeId earlier) {
    if (depends_on(id, earlier)) return false;
    const Node& node = graph_.node(id);
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
  std::vector<uint8_t> is_seen_;  // by node
  std::vector<NodeId> order_;
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

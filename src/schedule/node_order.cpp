#include "schedule/node_order.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "autograph/op_def.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

bool is_known(const Graph& graph, const KnownValues& known, ValueId value) {
  return graph.value(value).is_constant() || known.contains(value.index);
}

bool is_topological(const Graph& graph, const std::vector<NodeId>& nodes) {
  return std::none_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    const auto& inputs = graph.node(id).inputs();
    return std::any_of(inputs.begin(), inputs.end(), [&](ValueId input) {
      if (!input.is_valid()) return false;
      const NodeId producer = graph.value(input).producer();
      return producer.is_valid() && producer.index > id.index;
    });
  });
}

// Every node right behind the last of its inputs, so that values are read while they are in cache.
class DepthFirst {
 public:
  DepthFirst(const Graph& graph, const KnownValues& known)
      : graph_(graph), known_(known), seen_(graph.node_capacity(), 0) {}

  std::vector<NodeId> run(const std::vector<StateUpdate>& updates) {
    for (const ValueId output : graph_.outputs()) add(output);
    for (const StateUpdate& update : updates) {
      add_readers(update.state, graph_.value(update.value).producer());
      add(update.value);
    }
    for (const ValueId kept : graph_.kept()) add(kept);
    return std::move(order_);
  }

 private:
  struct Visit {
    NodeId node;
    size_t next_input = 0;
  };

  // What reads a state comes before its writer, which can then write over it.
  void add_readers(ValueId state, NodeId writer) {
    for (const Use& use : graph_.value(state).uses()) {
      if (use.node == writer) continue;
      const Node& reader = graph_.node(use.node);
      add(reader.output(0));
      if (reader.op().traits.view) add_readers(reader.output(0), writer);
    }
  }

  void add(ValueId value) {
    enter(value);
    while (!stack_.empty()) {
      Visit& top = stack_.back();
      const auto& inputs = graph_.node(top.node).inputs();
      if (top.next_input < inputs.size()) {
        enter(inputs[top.next_input++]);
      } else {
        order_.push_back(top.node);
        stack_.pop_back();
      }
    }
  }

  void enter(ValueId value) {
    if (!value.is_valid() || is_known(graph_, known_, value)) return;
    const NodeId producer = graph_.value(value).producer();
    if (!producer.is_valid() || seen_[producer.index]) return;
    seen_[producer.index] = 1;
    stack_.push_back({producer});
  }

  const Graph& graph_;
  const KnownValues& known_;
  std::vector<uint8_t> seen_;  // by node
  std::vector<Visit> stack_;
  std::vector<NodeId> order_;
};

// The most bytes that `order` keeps alive at once: of what nodes make, where its size is known. Views count as others,
// and what updates leave in states does not.
size_t most_alive(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<size_t> bytes(graph.value_capacity(), 0), last_reader(graph.value_capacity(), order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    for (const ValueId v : graph.node(order[i]).outputs())
      bytes[v.index] = is_plain(graph.type(v)) ? size_of(graph.type(v)) : 0;
    for (const ValueId v : graph.node(order[i]).inputs()) {
      if (v.is_valid()) last_reader[v.index] = i;
    }
  }
  for (const ValueId output : graph.outputs()) last_reader[output.index] = order.size();
  for (const StateUpdate& update : graph.updates()) bytes[update.value.index] = 0;
  size_t alive = 0, most = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    for (const ValueId v : graph.node(order[i]).outputs()) alive += bytes[v.index];
    most = std::max(most, alive);
    for (const ValueId v : graph.node(order[i]).inputs()) {
      if (v.is_valid() && last_reader[v.index] == i) alive -= std::exchange(bytes[v.index], 0);
    }
  }
  return most;
}

}  // namespace

std::vector<NodeId> sequential_order(const Graph& graph, const KnownValues& known) {
  std::vector<NodeId> nodes = graph.nodes();
  if (is_topological(graph, nodes)) return nodes;
  std::vector<StateUpdate> updates = graph.updates();
  std::vector<NodeId> order = DepthFirst(graph, known).run(updates);
  if (updates.size() < 2) return order;
  std::reverse(updates.begin(), updates.end());
  std::vector<NodeId> reversed = DepthFirst(graph, known).run(updates);
  return most_alive(graph, reversed) < most_alive(graph, order) ? reversed : order;
}

}  // namespace autograph

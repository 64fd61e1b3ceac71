// The order in which nodes may run: behind what they read, and what is kept in the order of keep().
#include <algorithm>
#include <vector>

#include "autograph/graph.h"
#include "base/check.h"

namespace autograph {
namespace {

// The nodes behind kept values, each behind those of them that it depends on, otherwise in the order of keep().
class KeptOrder {
 public:
  explicit KeptOrder(const Graph& graph)
      : graph_(graph), is_seen_(graph.node_capacity(), 0), is_kept_(graph.node_capacity(), 0) {}

  std::vector<NodeId> run() {
    for (const ValueId v : graph_.kept()) {
      if (const NodeId node = graph_.value(v).producer(); node.is_valid()) is_kept_[node.index] = 1;
    }
    for (const ValueId v : graph_.kept()) visit(v);
    return std::move(order_);
  }

 private:
  struct Visit {
    NodeId node;
    size_t next_input = 0;
  };

  void enter(ValueId v) {
    const NodeId node = v.is_valid() ? graph_.value(v).producer() : NodeId{};
    if (!node.is_valid() || is_seen_[node.index]) return;
    is_seen_[node.index] = 1;
    stack_.push_back({node});
  }

  void visit(ValueId kept) {
    enter(kept);
    while (!stack_.empty()) {
      Visit& top = stack_.back();
      const Node& node = graph_.node(top.node);
      if (top.next_input < node.inputs().size()) {
        enter(node.inputs()[top.next_input++]);
        continue;
      }
      if (is_kept_[top.node.index]) order_.push_back(top.node);
      stack_.pop_back();
    }
  }

  const Graph& graph_;
  std::vector<uint8_t> is_seen_;  // by node
  std::vector<uint8_t> is_kept_;  // by node
  std::vector<Visit> stack_;
  std::vector<NodeId> order_;
};

// By node: the kept node that comes behind it.
std::vector<NodeId> kept_successors(const Graph& graph) {
  std::vector<NodeId> next(graph.node_capacity());
  if (graph.kept().size() < 2) return next;
  const std::vector<NodeId> order = KeptOrder(graph).run();
  for (size_t i = 1; i < order.size(); ++i) next[order[i - 1].index] = order[i];
  return next;
}

[[noreturn]] void fail_with_cycle(const Graph& graph, const std::vector<uint32_t>& waiting, size_t num_left) {
  constexpr int kMaxListed = 5;
  std::string names;
  int listed = 0;
  for (const NodeId id : graph.nodes()) {
    if (listed == kMaxListed) break;
    if (waiting[id.index] > 0) names += (listed++ ? ", " : "") + describe(graph, id);
  }
  throw FormatError(fmt::format("[graph] cycle: {} of {} nodes are on a cycle or behind one: {}", num_left,
                                graph.num_nodes(), names));
}

}  // namespace

std::vector<NodeId> Graph::topological_order() const {
  // Kahn's algorithm; ready nodes leave in the order in which they became ready.
  const std::vector<NodeId> kept_next = kept_successors(*this);
  std::vector<uint32_t> waiting(nodes_.size(), 0);
  std::vector<NodeId> order;
  order.reserve(num_nodes_);
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (!nodes_[i].op_) continue;
    for (const ValueId input : nodes_[i].inputs_) {
      if (input.is_valid() && values_[input.index].producer_.is_valid()) ++waiting[i];
    }
    if (kept_next[i].is_valid()) ++waiting[kept_next[i].index];
  }
  const auto release = [&](NodeId id) {
    if (--waiting[id.index] == 0) order.push_back(id);
  };
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].op_ && waiting[i] == 0) order.push_back({i});
  }
  for (size_t next = 0; next < order.size(); ++next) {
    const uint32_t index = order[next].index;
    for (const ValueId output : nodes_[index].outputs_) {
      for (const Use& use : values_[output.index].uses_) release(use.node);
    }
    if (kept_next[index].is_valid()) release(kept_next[index]);
  }
  if (order.size() < num_nodes_) fail_with_cycle(*this, waiting, num_nodes_ - order.size());
  return order;
}

}  // namespace autograph

#include "optimize/rules/pattern/reachability.h"

#include <algorithm>

namespace autograph {
namespace {

constexpr size_t kMaxVisits = 4096;  // nodes seen from one side

// One of the two sides: nodes reached, and those whose neighbours were not looked at yet. Marks are numbers of
// searches, so that the next one need not clear them: they are kept from call to call, and a call costs what it looks
// at.
struct Side {
  std::vector<uint32_t> marks = {};  // by node
  std::vector<NodeId> frontier = {};
  size_t num_seen = 0;

  void start(size_t num_nodes) {
    if (marks.size() < num_nodes) marks.resize(num_nodes, 0);
    frontier.clear();
    num_seen = 0;
  }
  // True when the other side has been here.
  bool visit(NodeId node, const Side& other, uint32_t search) {
    if (marks[node.index] == search) return false;
    marks[node.index] = search;
    frontier.push_back(node);
    ++num_seen;
    return other.marks[node.index] == search;
  }
};

// Of one thread.
struct Scratch {
  Side forward = {};
  Side backward = {};
  uint32_t search = 0;

  void start(size_t num_nodes) {
    if (++search == 0) {  // numbers begin again
      *this = Scratch();
      search = 1;
    }
    forward.start(num_nodes);
    backward.start(num_nodes);
  }
};

}  // namespace

bool may_reach(const Graph& graph, std::span<const ValueId> from, std::span<const ValueId> to,
               const std::vector<NodeId>& avoided) {
  const auto is_avoided = [&](NodeId node) { return std::find(avoided.begin(), avoided.end(), node) != avoided.end(); };
  thread_local Scratch scratch;
  scratch.start(graph.node_capacity());
  Side& forward = scratch.forward;
  Side& backward = scratch.backward;
  const uint32_t search = scratch.search;
  const auto step_forward = [&](ValueId value) {
    const auto& uses = graph.value(value).uses();
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return !is_avoided(use.node) && forward.visit(use.node, backward, search);
    });
  };
  const auto step_backward = [&](ValueId value) {
    const NodeId producer = value.is_valid() ? graph.value(value).producer() : NodeId{};
    return producer.is_valid() && !is_avoided(producer) && backward.visit(producer, forward, search);
  };
  for (const ValueId value : to) {
    if (std::find(from.begin(), from.end(), value) != from.end()) return true;
    if (step_backward(value)) return true;
  }
  for (const ValueId value : from) {
    if (step_forward(value)) return true;
  }
  while (!forward.frontier.empty() && !backward.frontier.empty()) {
    if (forward.num_seen > kMaxVisits || backward.num_seen > kMaxVisits) return true;
    const bool go_forward = forward.num_seen <= backward.num_seen;
    Side& side = go_forward ? forward : backward;
    const Node& node = graph.node(side.frontier.back());
    side.frontier.pop_back();
    const bool found = go_forward ? std::any_of(node.outputs().begin(), node.outputs().end(), step_forward)
                                  : std::any_of(node.inputs().begin(), node.inputs().end(), step_backward);
    if (found) return true;
  }
  return false;
}

}  // namespace autograph

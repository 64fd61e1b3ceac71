#include "optimize/rules/reachability.h"

#include <algorithm>
#include <unordered_set>

namespace autograph {
namespace {

constexpr size_t kMaxVisits = 4096;  // nodes seen from one side

// One of the two sides: nodes reached, and those whose neighbours were not looked at yet.
struct Side {
  std::unordered_set<uint32_t> seen = {};
  std::vector<NodeId> frontier = {};

  // True when the other side has been here.
  bool visit(NodeId node, const Side& other) {
    if (!seen.insert(node.index).second) return false;
    frontier.push_back(node);
    return other.seen.count(node.index) > 0;
  }
};

}  // namespace

bool may_reach(const Graph& graph, std::span<const ValueId> from, std::span<const ValueId> to,
               const std::vector<NodeId>& avoided) {
  const auto is_avoided = [&](NodeId node) { return std::find(avoided.begin(), avoided.end(), node) != avoided.end(); };
  Side forward;
  Side backward;
  const auto step_forward = [&](ValueId value) {
    const auto& uses = graph.value(value).uses();
    return std::any_of(uses.begin(), uses.end(),
                       [&](const Use& use) { return !is_avoided(use.node) && forward.visit(use.node, backward); });
  };
  const auto step_backward = [&](ValueId value) {
    const NodeId producer = value.is_valid() ? graph.value(value).producer() : NodeId{};
    return producer.is_valid() && !is_avoided(producer) && backward.visit(producer, forward);
  };
  for (const ValueId value : to) {
    if (std::find(from.begin(), from.end(), value) != from.end()) return true;
    if (step_backward(value)) return true;
  }
  for (const ValueId value : from) {
    if (step_forward(value)) return true;
  }
  while (!forward.frontier.empty() && !backward.frontier.empty()) {
    if (forward.seen.size() > kMaxVisits || backward.seen.size() > kMaxVisits) return true;
    const bool go_forward = forward.seen.size() <= backward.seen.size();
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

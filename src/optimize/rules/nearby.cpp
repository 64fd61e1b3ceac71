#include "optimize/rules/nearby.h"

#include <algorithm>

#include "optimize/rules/siblings.h"

namespace autograph {
namespace {

constexpr size_t kMaxVisited = 128;
constexpr size_t kMaxReaders = 32;  // of one value: what more read says nothing about who belongs together
constexpr size_t kMaxGroup = 64;

// Nodes in the order in which a walk in all directions meets them.
std::vector<NodeId> walk_from(const Graph& graph, NodeId first) {
  std::vector<NodeId> seen{first};
  const auto visit = [&](NodeId node) {
    if (!node.is_valid() || seen.size() >= kMaxVisited) return;
    if (std::find(seen.begin(), seen.end(), node) == seen.end()) seen.push_back(node);
  };
  const auto visit_readers = [&](ValueId value) {
    const auto& uses = graph.value(value).uses();
    if (uses.size() > kMaxReaders) return;
    for (const Use& use : uses) visit(use.node);
  };
  for (size_t next = 0; next < seen.size() && seen.size() < kMaxVisited; ++next) {
    for (const ValueId value : graph.node(seen[next]).outputs()) visit_readers(value);
    for (const ValueId value : graph.node(seen[next]).inputs()) {
      if (!value.is_valid() || graph.value(value).is_constant()) continue;
      visit(graph.value(value).producer());
      visit_readers(value);
    }
  }
  return seen;
}

}  // namespace

std::vector<NodeId> group_near(const Graph& graph, NodeId first, FunctionRef<bool(NodeId)> is_alike) {
  std::vector<NodeId> alike;
  for (const NodeId node : walk_from(graph, first)) {
    const bool is_other = node != first && &graph.node(node).op() == &graph.node(first).op();
    if (is_other && is_alike(node)) alike.push_back(node);
  }
  std::sort(alike.begin(), alike.end());
  std::vector<NodeId> group{first};
  for (const NodeId node : alike) {
    const bool fits =
        std::all_of(group.begin(), group.end(), [&](NodeId member) { return are_independent(graph, member, node); });
    if (!fits) continue;
    if (node < first) return {};
    group.push_back(node);
    if (group.size() == kMaxGroup) break;
  }
  return group.size() > 1 ? group : std::vector<NodeId>{};
}

void sort_by_origin(const Graph& graph, std::vector<NodeId>& nodes, size_t slot) {
  const auto origin = [&](NodeId node) {
    const Value& value = graph.value(graph.node(node).input(slot));
    return std::pair(value.producer().is_valid() ? value.producer().index : 0, value.slot());
  };
  std::stable_sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) { return origin(a) < origin(b); });
}

}  // namespace autograph

#include "optimize/rules/pattern/ancestry.h"

#include <algorithm>
#include <utility>

namespace autograph {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr size_t kMaxVisits = 4096;  // nodes seen in one walk

thread_local AncestryScope* innermost = nullptr;

}  // namespace

Ancestry::Ancestry(const Graph& graph) : places_(graph.node_capacity()), marks_(graph.node_capacity(), 0) {
  find_successors(graph);
  std::vector<uint32_t> roots;
  for (const NodeId id : graph.nodes()) {
    places_[id.index].is_known = true;
    const auto& inputs = graph.node(id).inputs();
    const bool is_root = std::none_of(inputs.begin(), inputs.end(), [&](ValueId value) {
      return value.is_valid() && graph.value(value).producer().is_valid();
    });
    if (is_root) roots.push_back(id.index);
  }
  const std::vector<uint32_t> order = depth_first_order(roots, false);
  for (uint32_t rank = 0; rank < order.size(); ++rank) places_[order[rank]].rank = rank;
  find_levels_and_chains(order);
  std::reverse(roots.begin(), roots.end());
  const std::vector<uint32_t> mirrored = depth_first_order(roots, true);
  for (uint32_t rank = 0; rank < mirrored.size(); ++rank) places_[mirrored[rank]].mirrored_rank = rank;
}

void Ancestry::find_successors(const Graph& graph) {
  begins_.reserve(graph.node_capacity() + 1);
  for (uint32_t index = 0; index < graph.node_capacity(); ++index) {
    begins_.push_back(static_cast<uint32_t>(successors_.size()));
    if (!graph.is_live(NodeId{index})) continue;
    for (const ValueId value : graph.node(NodeId{index}).outputs()) {
      for (const Use& use : graph.value(value).uses()) successors_.push_back(use.node.index);
    }
  }
  begins_.push_back(static_cast<uint32_t>(successors_.size()));
}

// All nodes, each before those that depend on it: those that a walk leaves last come first.
std::vector<uint32_t> Ancestry::depth_first_order(std::span<const uint32_t> roots, bool is_mirrored) const {
  std::vector<uint8_t> is_seen(places_.size(), 0);
  std::vector<uint32_t> left;
  std::vector<std::pair<uint32_t, size_t>> path;  // nodes, and which successor is next
  const auto enter = [&](uint32_t node) {
    if (std::exchange(is_seen[node], 1) == 0) path.emplace_back(node, 0);
  };
  for (const uint32_t root : roots) {
    enter(root);
    while (!path.empty()) {
      auto& [node, next] = path.back();
      const auto list = successors(node);
      if (next == list.size()) {
        left.push_back(node);
        path.pop_back();
      } else {
        ++next;
        enter(is_mirrored ? list[list.size() - next] : list[next - 1]);
      }
    }
  }
  std::reverse(left.begin(), left.end());
  return left;
}

// A node goes on with the chain of the deepest one that it depends on: chains follow long ways.
void Ancestry::find_levels_and_chains(std::span<const uint32_t> order) {
  std::vector<uint32_t> deepest(places_.size(), kNowhere);  // of the nodes that one depends on at once
  for (const uint32_t node : order) {
    for (const uint32_t successor : successors(node)) {
      Place& next = places_[successor];
      if (next.level > places_[node].level) continue;
      next.level = places_[node].level + 1;
      deepest[successor] = node;
    }
  }
  std::vector<uint8_t> goes_on(places_.size(), 0);
  uint32_t num_chains = 0;
  for (const uint32_t node : order) {
    const uint32_t before = deepest[node];
    Place& place = places_[node];
    if (before != kNowhere && std::exchange(goes_on[before], 1) == 0) {
      place.chain = places_[before].chain;
      place.at = places_[before].at + 1;
    } else {
      place.chain = num_chains++;
    }
  }
}

bool Ancestry::may_lead(NodeId from, NodeId to) const {
  const Place& a = places_[from.index];
  const Place& b = places_[to.index];
  if (a.chain == b.chain) return a.at < b.at;
  return precedes(a, b) && walk(from.index, to.index);
}

// Through nodes alone that may come before `to`.
bool Ancestry::walk(uint32_t from, uint32_t to) const {
  if (++walk_ == 0) {  // numbers begin again
    std::fill(marks_.begin(), marks_.end(), 0);
    walk_ = 1;
  }
  const Place& end = places_[to];
  std::vector<uint32_t> pending{from};
  size_t num_seen = 0;
  while (!pending.empty()) {
    const uint32_t node = pending.back();
    pending.pop_back();
    for (const uint32_t next : successors(node)) {
      const Place& place = places_[next];
      if (next == to || (place.chain == end.chain && place.at < end.at)) return true;
      if (marks_[next] == walk_ || !precedes(place, end)) continue;
      marks_[next] = walk_;
      ++num_walked_;
      if (++num_seen > kMaxVisits) return true;
      pending.push_back(next);
    }
  }
  return false;
}

AncestryScope::AncestryScope(const Graph& graph) : graph_(graph), outer_(std::exchange(innermost, this)) {}

AncestryScope::~AncestryScope() { innermost = outer_; }

// The outermost scope of a graph tells: it has been asked before.
const Ancestry* ancestry_of(const Graph& graph) {
  AncestryScope* found = nullptr;
  for (AncestryScope* scope = innermost; scope; scope = scope->outer_) {
    if (&scope->graph_ == &graph) found = scope;
  }
  if (!found) return nullptr;
  if (!found->ancestry_) found->ancestry_.emplace(graph);
  return &*found->ancestry_;
}

}  // namespace autograph

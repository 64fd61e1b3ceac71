#include "optimize/search/min_cut.h"

#include <algorithm>

namespace autograph {
namespace {

// What is left of a capacity after rounding.
constexpr double kNothing = 1e-9;

}  // namespace

void MinCut::add_edge(uint32_t from, uint32_t to, double capacity) {
  edges_of_[from].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[to].push_back(static_cast<uint32_t>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels(uint32_t source, uint32_t sink) {
  level_.assign(edges_of_.size(), -1);
  level_[source] = 0;
  std::vector<uint32_t> queue{source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (const uint32_t e : edges_of_[queue[i]]) {
      if (edges_[e].capacity <= kNothing || level_[edges_[e].to] >= 0) continue;
      level_[edges_[e].to] = level_[queue[i]] + 1;
      queue.push_back(edges_[e].to);
    }
  }
  return level_[sink] >= 0;
}

// Pushes flow along one path of the level graph; 0 when there is none left. Without recursion: paths may be long.
double MinCut::push_path(uint32_t source, uint32_t sink) {
  std::vector<uint32_t> path;
  uint32_t at = source;
  while (at != sink) {
    if (next_[at] < edges_of_[at].size()) {
      const uint32_t e = edges_of_[at][next_[at]];
      if (edges_[e].capacity > kNothing && level_[edges_[e].to] == level_[at] + 1) {
        path.push_back(e);
        at = edges_[e].to;
      } else {
        ++next_[at];
      }
      continue;
    }
    if (path.empty()) return 0;
    at = edges_[path.back() ^ 1].to;
    path.pop_back();
    ++next_[at];
  }
  double amount = kUnbounded;
  for (const uint32_t e : path) amount = std::min(amount, edges_[e].capacity);
  for (const uint32_t e : path) {
    edges_[e].capacity -= amount;
    edges_[e ^ 1].capacity += amount;
  }
  return amount;
}

std::vector<bool> MinCut::source_side(uint32_t source, uint32_t sink) {
  while (find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    for (double pushed = push_path(source, sink); pushed > 0; pushed = push_path(source, sink)) {
      flow_ += pushed;
      if (flow_ == kUnbounded) return std::vector<bool>(edges_of_.size(), false);
    }
  }
  std::vector<bool> side(edges_of_.size());
  for (size_t v = 0; v < side.size(); ++v) side[v] = level_[v] >= 0;
  return side;
}

}  // namespace autograph

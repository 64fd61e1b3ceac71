#include "schedule/schedulers/matching.h"

namespace autograph {
namespace {

class Matcher {
 public:
  Matcher(const std::vector<std::vector<uint32_t>>& edges, size_t num_right)
      : edges_(edges), right_of_(edges.size(), kUnmatched), left_of_(num_right, kUnmatched) {}

  std::vector<uint32_t> run() {
    while (layer()) {
      next_edge_.assign(edges_.size(), 0);
      for (uint32_t left = 0; left < edges_.size(); ++left) {
        if (right_of_[left] == kUnmatched) augment(left);
      }
    }
    return std::move(right_of_);
  }

 private:
  // Breadth-first distances of left vertices from the unmatched ones along alternating paths; false when no path ends
  // at an unmatched right vertex.
  bool layer() {
    layer_.assign(edges_.size(), kUnmatched);
    std::vector<uint32_t> queue;
    for (uint32_t left = 0; left < edges_.size(); ++left) {
      if (right_of_[left] != kUnmatched) continue;
      layer_[left] = 0;
      queue.push_back(left);
    }
    bool found = false;
    for (size_t head = 0; head < queue.size(); ++head) {
      const uint32_t left = queue[head];
      for (const uint32_t right : edges_[left]) {
        const uint32_t next = left_of_[right];
        if (next == kUnmatched) found = true;
        if (next == kUnmatched || layer_[next] != kUnmatched) continue;
        layer_[next] = layer_[left] + 1;
        queue.push_back(next);
      }
    }
    return found;
  }

  // Flips a shortest alternating path from the unmatched `root` to an unmatched right vertex, if there is one. A loop
  // with a stack of its own: paths can be as long as the graph.
  void augment(uint32_t root) {
    std::vector<uint32_t> path = {root};
    while (!path.empty()) {
      const uint32_t left = path.back();
      if (next_edge_[left] == edges_[left].size()) {
        path.pop_back();
        if (!path.empty()) ++next_edge_[path.back()];
        continue;
      }
      const uint32_t next = left_of_[edges_[left][next_edge_[left]]];
      if (next == kUnmatched) return flip(path);
      if (layer_[next] == layer_[left] + 1) {
        path.push_back(next);
      } else {
        ++next_edge_[left];
      }
    }
  }

  void flip(const std::vector<uint32_t>& path) {
    for (const uint32_t left : path) {
      const uint32_t right = edges_[left][next_edge_[left]];
      right_of_[left] = right;
      left_of_[right] = left;
      next_edge_[left] = edges_[left].size();  // used up in this phase: shortest paths share no vertex
    }
  }

  const std::vector<std::vector<uint32_t>>& edges_;
  std::vector<uint32_t> right_of_;
  std::vector<uint32_t> left_of_;
  std::vector<uint32_t> layer_;
  std::vector<size_t> next_edge_;  // of each left vertex: the edges before it lead nowhere in this phase
};

}  // namespace

std::vector<uint32_t> maximum_matching(const std::vector<std::vector<uint32_t>>& edges, size_t num_right) {
  return Matcher(edges, num_right).run();
}

}  // namespace autograph

// Minimum s-t cuts (Dinic 1970).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace autograph {

/// A network with a source and a sink; capacities add up over parallel edges.
class MinCut {
 public:
  static constexpr double kUnbounded = std::numeric_limits<double>::infinity();

  explicit MinCut(size_t num_vertices) : edges_of_(num_vertices) {}
  void add_edge(uint32_t from, uint32_t to, double capacity);
  /// Is each vertex on the source's side of the minimum cut with the fewest vertices there? O(V^2 E), far less in
  /// practice. To be called once.
  std::vector<bool> source_side(uint32_t source, uint32_t sink);
  /// Capacity of the cut; after source_side().
  double cut() const { return flow_; }

 private:
  struct Edge {
    uint32_t to;
    double capacity;  // what is left
  };
  bool find_levels(uint32_t source, uint32_t sink);
  double push_path(uint32_t source, uint32_t sink);

  std::vector<Edge> edges_;  // edge e and its reverse e ^ 1
  std::vector<std::vector<uint32_t>> edges_of_;
  std::vector<int32_t> level_;
  std::vector<size_t> next_;
  double flow_ = 0;
};

}  // namespace autograph

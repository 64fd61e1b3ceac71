// Dilworth: the largest antichain has as many nodes as the fewest paths that cover all nodes, where paths may share
// nodes. With n nodes that cover is n - M, M the maximum flow of the network
//   source -> out(u), in(v) -> sink with capacity 1; out(u) -> in(v) for each edge, in(v) -> out(v) without limit,
// where the last kind of arc lets a path pass through a node that another path covers. Dinic's algorithm finds M.
#include "report/graph_width.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace autograph {
namespace {

constexpr size_t kExactNodes = 20'000;

class FlowNetwork {
 public:
  explicit FlowNetwork(size_t vertices) : first_(vertices), level_(vertices), next_(vertices) {}

  void add_arc(int from, int to, int capacity) {
    first_[static_cast<size_t>(from)].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({to, capacity});
    first_[static_cast<size_t>(to)].push_back(static_cast<int>(arcs_.size()));
    arcs_.push_back({from, 0});
  }

  int64_t max_flow(int source, int sink) {
    int64_t flow = 0;
    while (find_levels(source, sink)) {
      std::fill(next_.begin(), next_.end(), 0);
      while (augment(source, sink)) ++flow;
    }
    return flow;
  }

 private:
  struct Arc {
    int to;
    int capacity;
  };

  bool find_levels(int source, int sink) {
    std::fill(level_.begin(), level_.end(), -1);
    std::vector<int> queue = {source};
    level_[static_cast<size_t>(source)] = 0;
    for (size_t i = 0; i < queue.size(); ++i) {
      const auto from = static_cast<size_t>(queue[i]);
      for (const int a : first_[from]) {
        const Arc& arc = arcs_[static_cast<size_t>(a)];
        if (arc.capacity == 0 || level_[static_cast<size_t>(arc.to)] >= 0) continue;
        level_[static_cast<size_t>(arc.to)] = level_[from] + 1;
        queue.push_back(arc.to);
      }
    }
    return level_[static_cast<size_t>(sink)] >= 0;
  }

  // Sends one unit along a shortest path, without recursion (paths are as long as the graph is deep).
  bool augment(int source, int sink) {
    std::vector<int> path;
    int at = source;
    while (at != sink) {
      const auto from = static_cast<size_t>(at);
      if (next_[from] == first_[from].size()) {
        if (path.empty()) return false;
        at = arcs_[static_cast<size_t>(path.back() ^ 1)].to;
        path.pop_back();
        ++next_[static_cast<size_t>(at)];
        continue;
      }
      const int a = first_[from][next_[from]];
      const Arc& arc = arcs_[static_cast<size_t>(a)];
      if (arc.capacity > 0 && level_[static_cast<size_t>(arc.to)] == level_[from] + 1) {
        path.push_back(a);
        at = arc.to;
      } else {
        ++next_[from];
      }
    }
    for (const int a : path) {
      --arcs_[static_cast<size_t>(a)].capacity;
      ++arcs_[static_cast<size_t>(a ^ 1)].capacity;
    }
    return true;
  }

  std::vector<Arc> arcs_;  // arc i and its reverse i ^ 1
  std::vector<std::vector<int>> first_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

// For each node, in topological order: positions of the nodes that read it, without repetition.
std::vector<std::vector<int>> successors(const Graph& graph, const std::vector<NodeId>& order) {
  std::vector<int> position(graph.node_capacity(), -1);
  for (size_t i = 0; i < order.size(); ++i) position[order[i].index] = static_cast<int>(i);
  std::vector<std::vector<int>> result(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    for (const ValueId output : graph.node(order[i]).outputs()) {
      for (const Use& use : graph.value(output).uses()) result[i].push_back(position[use.node.index]);
    }
    std::sort(result[i].begin(), result[i].end());
    result[i].erase(std::unique(result[i].begin(), result[i].end()), result[i].end());
  }
  return result;
}

int64_t exact_width(const std::vector<std::vector<int>>& readers) {
  const auto count = static_cast<int>(readers.size());
  const int source = 2 * count;
  const int sink = source + 1;
  FlowNetwork network(static_cast<size_t>(2 * count + 2));
  for (int node = 0; node < count; ++node) {
    network.add_arc(source, node, 1);        // out(node) = node
    network.add_arc(count + node, sink, 1);  // in(node) = count + node
    network.add_arc(count + node, node, count);
    for (const int reader : readers[static_cast<size_t>(node)]) network.add_arc(node, count + reader, count);
  }
  return count - network.max_flow(source, sink);
}

}  // namespace

GraphExtent measure_extent(const Graph& graph) {
  const std::vector<std::vector<int>> readers = successors(graph, graph.topological_order());
  std::vector<int64_t> depth(readers.size(), 1);
  std::vector<int64_t> at_depth(readers.size() + 1, 0);
  GraphExtent extent;
  for (size_t node = 0; node < readers.size(); ++node) {
    for (const int reader : readers[node]) {
      int64_t& of_reader = depth[static_cast<size_t>(reader)];
      of_reader = std::max(of_reader, depth[node] + 1);
    }
    extent.depth = std::max(extent.depth, depth[node]);
    extent.width = std::max(extent.width, ++at_depth[static_cast<size_t>(depth[node])]);
  }
  if (readers.size() <= kExactNodes && !readers.empty()) extent.width = exact_width(readers);
  return extent;
}

}  // namespace autograph

#include "report/critical_path.h"

#include <algorithm>

#include "base/check.h"
#include "engine/node_times.h"

namespace autograph {

CriticalPath critical_path(const Graph& graph, const std::vector<double>& node_us) {
  const std::vector<NodeId> order = graph.topological_order();
  AG_CHECK(order.size() == node_us.size(), "{} times for {} nodes", node_us.size(), order.size());
  std::vector<double> finish(graph.node_capacity(), 0);
  std::vector<NodeId> before(graph.node_capacity());
  NodeId last;
  for (size_t i = 0; i < order.size(); ++i) {
    const NodeId id = order[i];
    double start = 0;
    for (const ValueId input : graph.node(id).inputs()) {
      const NodeId producer = input.is_valid() ? graph.value(input).producer() : NodeId{};
      // Nodes without a time (views) also belong to the chain that reaches them first.
      if (!producer.is_valid() || (before[id.index].is_valid() && finish[producer.index] <= start)) continue;
      start = finish[producer.index];
      before[id.index] = producer;
    }
    finish[id.index] = start + node_us[i];
    if (!last.is_valid() || finish[id.index] > finish[last.index]) last = id;
  }
  CriticalPath path;
  if (!last.is_valid()) return path;
  path.us = finish[last.index];
  for (NodeId id = last; id.is_valid(); id = before[id.index]) path.nodes.push_back(id);
  std::reverse(path.nodes.begin(), path.nodes.end());
  return path;
}

double critical_path_us(const Graph& graph, const std::vector<StepProfile>& steps) {
  return critical_path(graph, node_times_us(graph, steps)).us;
}

}  // namespace autograph

#include "engine/strategies/diversity.h"

#include <algorithm>
#include <cmath>

#include "autograph/op_def.h"
#include "base/hash.h"
#include "graph/attribute_hash.h"

namespace autograph {

Hash128 kind_alone(const Graph& graph, const Node& node) {
  Hasher hasher;
  hasher.add(node.op().name);
  add_attributes(hasher, node.attributes());
  for (const ValueId v : node.inputs()) {
    hasher.add(v.is_valid() ? to_string(graph.type(v)) : std::string());
    hasher.add(static_cast<int64_t>(v.is_valid() && graph.value(v).is_constant()));
  }
  for (const ValueId v : node.outputs()) hasher.add(to_string(graph.type(v)));
  return hasher.finish();
}

Composition::Composition(const Graph& graph, const std::function<double(NodeId)>& node_us) {
  std::vector<Hash128> alone(graph.node_capacity());
  const std::vector<NodeId> nodes = graph.nodes();
  for (const NodeId id : nodes) alone[id.index] = kind_alone(graph, graph.node(id));
  for (const NodeId id : nodes) {
    const double us = node_us(id);
    if (us <= 0) continue;
    Hasher hasher;
    hasher.add(alone[id.index]);
    for (const ValueId v : graph.node(id).inputs()) {
      const NodeId maker = v.is_valid() ? graph.value(v).producer() : NodeId{};
      hasher.add(maker.is_valid() ? alone[maker.index] : Hash128{});
    }
    us_of_[hasher.finish().low] += us;
    sum_us_ += us;
  }
}

double Composition::distance(const Composition& other) const {
  const double sum_us = sum_us_ + other.sum_us_;
  if (sum_us <= 0) return 0;
  double apart_us = 0;
  double met_us = 0;  // of the other's
  for (const auto& [kind, us] : us_of_) {
    const auto there = other.us_of_.find(kind);
    const double us_there = there == other.us_of_.end() ? 0 : there->second;
    apart_us += std::abs(us - us_there);
    met_us += us_there;
  }
  return (apart_us + std::max(0.0, other.sum_us_ - met_us)) / sum_us;
}

std::vector<size_t> diverse_order(const std::vector<Composition>& graphs) {
  std::vector<size_t> apart;
  std::vector<size_t> near;
  for (size_t i = 0; i < graphs.size(); ++i) {
    const bool is_near = std::any_of(apart.begin(), apart.end(),
                                     [&](size_t other) { return graphs[i].distance(graphs[other]) < kNearlyTheSame; });
    (is_near ? near : apart).push_back(i);
  }
  apart.insert(apart.end(), near.begin(), near.end());
  return apart;
}

}  // namespace autograph

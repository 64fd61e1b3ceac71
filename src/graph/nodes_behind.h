// What a graph computes values from.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// By node: is any of `values` computed from what it makes? Goes back from a value to the node that makes it, and on
/// from what that reads, but not from values for which `stops` is true. It may visit the whole graph.
template <class Stops>
std::vector<uint8_t> nodes_behind(const Graph& graph, std::vector<ValueId> values, const Stops& stops) {
  std::vector<uint8_t> is_behind(graph.node_capacity(), 0);
  while (!values.empty()) {
    const ValueId v = values.back();
    values.pop_back();
    const NodeId producer = v.is_valid() && !stops(v) ? graph.value(v).producer() : NodeId{};
    if (!producer.is_valid() || is_behind[producer.index]) continue;
    is_behind[producer.index] = 1;
    const std::vector<ValueId>& inputs = graph.node(producer).inputs();
    values.insert(values.end(), inputs.begin(), inputs.end());
  }
  return is_behind;
}

}  // namespace autograph

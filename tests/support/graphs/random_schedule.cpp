#include "support/graphs/random_schedule.h"

#include <algorithm>

#include "ops/sample.h"

namespace autograph {
namespace {

// Every node somewhere behind those that it reads from.
std::vector<NodeId> draw_order(Random& random, const Graph& graph) {
  std::vector<NodeId> left = graph.topological_order();
  std::vector<uint8_t> done(graph.node_capacity(), 0);
  std::vector<NodeId> order;
  const auto is_ready = [&](NodeId id) {
    const auto& inputs = graph.node(id).inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId v) {
      const NodeId producer = v.is_valid() ? graph.value(v).producer() : NodeId{};
      return !producer.is_valid() || done[producer.index];
    });
  };
  while (!left.empty()) {
    // The first that is ready behind a random place; the very first is always ready.
    const auto start = left.begin() + draw(random, 0, static_cast<int64_t>(left.size()) - 1);
    auto next = std::find_if(start, left.end(), is_ready);
    if (next == left.end()) next = std::find_if(left.begin(), left.end(), is_ready);
    done[next->index] = 1;
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace

Schedule make_random_schedule(Random& random, const Graph& graph, int max_streams, int max_threads) {
  const std::vector<NodeId> order = draw_order(random, graph);
  Schedule schedule;
  size_t at = 0;
  while (at < order.size()) {
    const auto left = static_cast<int64_t>(order.size() - at);
    const auto length = static_cast<size_t>(draw_bool(random) ? left : draw(random, 1, left));
    Stage& stage = schedule.stages.emplace_back();
    stage.streams.resize(static_cast<size_t>(draw(random, 1, max_streams)));
    stage.threads = static_cast<int>(draw(random, 0, max_threads));
    for (const size_t end = at + length; at < end; ++at) {
      const auto stream = static_cast<size_t>(draw(random, 0, static_cast<int64_t>(stage.streams.size()) - 1));
      stage.streams[stream].push_back(order[at]);
    }
  }
  return schedule;
}

}  // namespace autograph

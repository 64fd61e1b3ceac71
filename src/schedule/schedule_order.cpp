#include "schedule/schedule_order.h"

#include <algorithm>

namespace autograph {
namespace {

// Goes through one stage after the other.
class Walk {
 public:
  explicit Walk(const Graph& graph) : graph_(graph), done_(graph.node_capacity(), 0) {}

  // Adds the nodes of a stage to `order` as far as it goes; false when some are left.
  bool run(const Stage& stage, uint32_t number, ScheduleOrder& order) {
    std::vector<size_t> next(stage.streams.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (uint32_t s = 0; s < next.size(); ++s) {
        const auto& stream = stage.streams[s];
        if (next[s] == stream.size() || !is_ready(stream[next[s]])) continue;
        const NodeId id = stream[next[s]++];
        done_[id.index] = 1;
        order.nodes.push_back({id, number, s});
        moved = true;
      }
    }
    for (size_t s = 0; s < next.size(); ++s) {
      if (next[s] == stage.streams[s].size()) continue;
      order.stuck = stage.streams[s][next[s]];
      order.stuck_stage = number;
      return false;
    }
    return true;
  }

 private:
  bool is_ready(NodeId id) const {
    const auto& inputs = graph_.node(id).inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId v) {
      const NodeId producer = v.is_valid() ? graph_.value(v).producer() : NodeId{};
      return !producer.is_valid() || done_[producer.index];
    });
  }

  const Graph& graph_;
  std::vector<uint8_t> done_;
};

}  // namespace

ScheduleOrder schedule_order(const Schedule& schedule, const Graph& graph) {
  ScheduleOrder order;
  Walk walk(graph);
  for (uint32_t number = 0; number < schedule.stages.size(); ++number) {
    if (!walk.run(schedule.stages[number], number, order)) break;
  }
  return order;
}

}  // namespace autograph

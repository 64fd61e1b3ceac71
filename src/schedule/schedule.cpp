#include "autograph/schedule.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"

namespace autograph {
namespace {

struct Position {
  size_t stage = 0;
  size_t stream = 0;
  size_t place = 0;
  bool is_known = false;
};

std::vector<Position> positions(const Schedule& schedule, const Graph& graph) {
  std::vector<Position> found(graph.node_capacity());
  for (size_t stage = 0; stage < schedule.stages.size(); ++stage) {
    const auto& streams = schedule.stages[stage].streams;
    for (size_t stream = 0; stream < streams.size(); ++stream) {
      for (size_t place = 0; place < streams[stream].size(); ++place) {
        const NodeId id = streams[stream][place];
        AG_CHECK(graph.is_live(id), "schedule: stage {} has node #{}, which the graph lacks", stage, id.index);
        AG_CHECK(!found[id.index].is_known, "schedule: {} stands there twice", describe(graph, id));
        found[id.index] = {stage, stream, place, true};
      }
    }
  }
  return found;
}

// Runs the streams of one stage as far as they go; true when all come to their end.
class StageWalk {
 public:
  StageWalk(const Graph& graph, std::vector<uint8_t>& done) : graph_(graph), done_(done) {}

  bool run(const Stage& stage) {
    std::vector<size_t> next(stage.streams.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < next.size(); ++s) {
        for (; next[s] < stage.streams[s].size() && is_ready(stage.streams[s][next[s]]); ++next[s]) {
          done_[stage.streams[s][next[s]].index] = 1;
          moved = true;
        }
      }
    }
    for (size_t s = 0; s < next.size(); ++s) {
      if (next[s] == stage.streams[s].size()) continue;
      stuck_ = stage.streams[s][next[s]];
      return false;
    }
    return true;
  }
  NodeId stuck() const { return stuck_; }

 private:
  bool is_ready(NodeId id) const {
    const auto& inputs = graph_.node(id).inputs();
    return std::all_of(inputs.begin(), inputs.end(), [&](ValueId v) {
      const NodeId producer = v.is_valid() ? graph_.value(v).producer() : NodeId{};
      return !producer.is_valid() || done_[producer.index];
    });
  }

  const Graph& graph_;
  std::vector<uint8_t>& done_;
  NodeId stuck_;
};

}  // namespace

int Schedule::width() const {
  size_t width = 1;
  for (const Stage& stage : stages) width = std::max(width, stage.streams.size());
  return static_cast<int>(width);
}

void verify(const Schedule& schedule, const Graph& graph) {
  if (schedule.is_sequential()) return;
  const std::vector<Position> position = positions(schedule, graph);
  for (const NodeId id : graph.nodes()) {
    AG_CHECK(position[id.index].is_known, "schedule: {} is in no stage", describe(graph, id));
  }
  std::vector<uint8_t> done(graph.node_capacity(), 0);
  for (size_t number = 0; number < schedule.stages.size(); ++number) {
    StageWalk walk(graph, done);
    AG_CHECK(walk.run(schedule.stages[number]), "schedule: {} in stage {} waits for what never comes",
             describe(graph, walk.stuck()), number);
  }
}

std::string to_string(const Schedule& schedule, const Graph& graph) {
  std::string text;
  for (size_t number = 0; number < schedule.stages.size(); ++number) {
    const Stage& stage = schedule.stages[number];
    text += fmt::format("stage {}: {} stream{}\n", number, stage.streams.size(), stage.streams.size() == 1 ? "" : "s");
    for (const auto& stream : stage.streams) {
      text += " ";
      for (const NodeId id : stream) text += fmt::format(" #{} {}", id.index, graph.node(id).op().name);
      text += "\n";
    }
  }
  return text;
}

}  // namespace autograph

#include "autograph/schedule.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "schedule/schedule_order.h"

namespace autograph {
namespace {

// Which node of the graph is missing, unknown or there twice; "" when all is well.
std::string find_misplaced(const Schedule& schedule, const Graph& graph) {
  std::vector<uint8_t> seen(graph.node_capacity(), 0);
  for (size_t number = 0; number < schedule.stages.size(); ++number) {
    const Stage& stage = schedule.stages[number];
    if (stage.threads < 0) return fmt::format("stage {}: expected 0 threads or more, got {}", number, stage.threads);
    for (const auto& stream : stage.streams) {
      for (const NodeId id : stream) {
        if (!graph.is_live(id)) return fmt::format("stage {} has node #{}, which the graph lacks", number, id.index);
        if (seen[id.index]++) return fmt::format("{} stands there twice", describe(graph, id));
      }
    }
  }
  for (const NodeId id : graph.nodes()) {
    if (!seen[id.index]) return fmt::format("{} is in no stage", describe(graph, id));
  }
  return "";
}

}  // namespace

int Schedule::width() const {
  size_t width = 1;
  for (const Stage& stage : stages) width = std::max(width, stage.streams.size());
  return static_cast<int>(width);
}

std::string find_fault(const Schedule& schedule, const Graph& graph) {
  if (schedule.is_sequential()) return "";
  std::string fault = find_misplaced(schedule, graph);
  if (!fault.empty()) return fault;
  const ScheduleOrder order = schedule_order(schedule, graph);
  if (!order.stuck.is_valid()) return "";
  return fmt::format("{} in stage {} waits for what never comes", describe(graph, order.stuck), order.stuck_stage);
}

void verify(const Schedule& schedule, const Graph& graph) {
  const std::string fault = find_fault(schedule, graph);
  AG_CHECK(fault.empty(), "schedule: {}", fault);
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

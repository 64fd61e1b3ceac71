// A schedule as one order of nodes in which they can run one after the other.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/schedule.h"

namespace autograph {

/// A node and where the schedule has it.
struct ScheduledNode {
  NodeId node;
  uint32_t stage = 0;
  uint32_t stream = 0;
};

/// See schedule_order().
struct ScheduleOrder {
  std::vector<ScheduledNode> nodes;
  NodeId stuck;  ///< A node that waits for what never comes; invalid when all nodes have their place.
  uint32_t stuck_stage = 0;
};

/// All nodes of `schedule`, whose ids must be live: stage by stage, and the streams of a stage in turns, each going one
/// node further when all that the node reads has been there. O(nodes * streams + edges).
ScheduleOrder schedule_order(const Schedule& schedule, const Graph& graph);

}  // namespace autograph

// A loop or scan as a NestedRun: turns on memory of the plan around them.
#pragma once

#include <optional>

#include "ops/control/nested_run.h"
#include "ops/control/turn_loop.h"

namespace autograph {

/// Which inputs of the node the body gets, and what says how many turns there are.
struct TurnWiring {
  TurnPlan turns;
  size_t first_input = 0;            ///< Input `i` of the body is input `first_input + i` of the node.
  std::optional<int64_t> num_turns;  ///< None: element 0 of input 0 of the node, or no limit when not given.
};

/// `call` as turns; null where the body cannot be planned, or gives other types than the node has.
std::unique_ptr<NestedRun> plan_turns(const NestedCall& call, TurnWiring wiring);

}  // namespace autograph

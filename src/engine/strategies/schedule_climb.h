// Rewrites ranked by the schedule that would run: backtracking over the whole graph for the makespan of the list
// scheduler. Parts are searched by costs that add up; what pays only because of what runs beside it, such as two
// kernels that become one and leave room to a third, is found here. Looking at a whole graph takes a millisecond for
// some hundred nodes, so that this ends a search rather than being all of it.
#pragma once

#include <vector>

#include "engine/strategies/strategy.h"

namespace autograph {

/// Graphs made from `graph` whose schedule ends sooner, the soonest first; `graph` itself is not among them. `cost`
/// must be one of time: not of what nodes keep busy. Ends when `until`, a part of the budget, is over.
std::vector<Rewritten> climb_by_schedule(StrategyContext& context, const Graph& graph, FusedCost& cost, double until,
                                         double shown_us);

}  // namespace autograph

// Kernels that fill little of a device cut into parts that run side by side (rules that spread, RuleClass::spreads).
//
// A convolution with few outputs and long sums keeps a few processors busy for long while the others idle. Its parts do
// more work in all and end sooner, but only where nothing else would have used the room: which nodes are cut, and into
// how many parts, is decided by the makespan of the list schedule of the whole graph. Nodes alike change together
// first, since what runs side by side ends when the last one does; then one by one.
#pragma once

#include "engine/strategies/strategy.h"

namespace autograph {

/// Does the kernel of a node run long enough on few enough processors, by its load, that parts of it may pay? Never
/// where the cost model knows no loads.
bool has_room_beside(const CandidateGraph& candidate, NodeId node);

/// `graph` with the nodes cut that end its schedule sooner, and how; without steps where none does. `cost` must be one
/// of time. Ends when `until`, a part of the budget, is over.
Rewritten spread_kernels(StrategyContext& context, const Graph& graph, FusedCost& cost, double until);

}  // namespace autograph

// Does one value depend on another? Looks from both sides at once, so that the answer costs twice the smaller side.
#pragma once

#include <span>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// True when a path leads from one of `from` to one of `to`, not through nodes in `avoided`; also when the answer would
/// take longer than looking at a fixed number of nodes.
bool may_reach(const Graph& graph, std::span<const ValueId> from, std::span<const ValueId> to,
               const std::vector<NodeId>& avoided);

}  // namespace autograph

// The smallest part of a set that still fails: delta debugging (Zeller, Hildebrandt: Simplifying and isolating
// failure-inducing input, 2002), with removal of chunks alone.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "autograph/graph.h"

namespace autograph {

/// Nodes of `nodes`, which fail together, such that none of them can be left out. `fails` is asked about subsets, in
/// order; `is_over` before each: true gives back the smallest so far.
std::vector<NodeId> smallest_failing(std::vector<NodeId> nodes,
                                     const std::function<bool(const std::vector<NodeId>&)>& fails,
                                     const std::function<bool()>& is_over);

}  // namespace autograph

// Which values of a graph say what its shapes are.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "autograph/graph.h"

namespace autograph {

/// Indices of the values that type inference asks for the elements of, and of those that these are computed from, as
/// far as nothing but constants and extents goes into them: a change of one of them would give another graph, not
/// another rounding. Nested graphs are left out.
std::unordered_set<uint32_t> shape_operands(const Graph& graph);

}  // namespace autograph

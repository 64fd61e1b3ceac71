// What a rewrite may do to factors that are constants without leaving the range of their dtype.
#pragma once

#include <span>

#include "autograph/graph.h"

namespace autograph {

/// Are the constant factors and divisors of the products and quotients among `nodes` far from the ends of the range of
/// their dtype? Rules hold for real numbers: (x 1e30) 1e-30 is x, x (1e30 1e-30) too, but (x 1e20) 1e20 may be finite
/// where 1e20 1e20 is not. Large tensors are taken for moderate: they are weights, and to look at them takes time.
bool have_moderate_factors(const Graph& graph, std::span<const NodeId> nodes);

}  // namespace autograph

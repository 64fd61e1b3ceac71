// grid_sample in other ops, which is how it is differentiated.
#pragma once

#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Body of grid_sample. Positions are computed in f64, as the reference does, so that both take the same elements.
/// Throws UnsupportedError while channels, or spatial extents of x or the grid, are unknown.
std::vector<Var> grid_sample_body(DecomposeContext& context);

}  // namespace autograph

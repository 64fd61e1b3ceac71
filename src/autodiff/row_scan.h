// Repeats a part of a graph for each row of the unit matrix.
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// `result`, which depends on `seed`, for each value of seed that is 1 at one element and 0 elsewhere:
/// [extents of seed..., extents of result...].
Var scan_unit_rows(const Var& seed, const Var& result);

}  // namespace autograph

// The cost of ops that read only the elements they put out: slices and look-ups in tables.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// The elements put out are read and written once, and inputs but the first are read.
OpCost picked_cost(const CostContext& context);

}  // namespace autograph

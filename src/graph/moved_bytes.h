// The part that the costs of most ops have in common.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// Bytes of all inputs and outputs whose extents are known.
double moved_bytes(const CostContext& context);

}  // namespace autograph

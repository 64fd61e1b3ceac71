// The gradients of scatters.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// The rule of a scatter: `gather` is the op that reads where it writes, and has its attributes but the reduction.
/// Where several updates of the same place replace each other (reduction none), which of them counts is not defined,
/// and each gets the gradient of the place.
void scatter_vjp(VjpContext& context, const OpDef& gather);

}  // namespace autograph

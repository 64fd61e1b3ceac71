// The gradient of attention.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// From the attention weights, which are computed again and kept for all queries and keys.
void attention_vjp(VjpContext& context);

}  // namespace autograph

// The gradient of attention.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// The node becomes tiled_attention, whose gradient keeps no weights. Where it has a cache, padded keys, or a gradient
/// flows into its mask or comes out of its further outputs: from the attention weights, which are computed again and
/// kept for all queries and keys.
void attention_vjp(VjpContext& context);

}  // namespace autograph

// The gradient of attention through tiled_attention.
#pragma once

#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Sets the gradients of q, k and v of a node of attention or tiled_attention, whose mask nobody wants a gradient of,
/// from {y, log_sum_exp}.
void tiled_attention_vjp(VjpContext& context, const std::vector<Var>& outputs);

/// The attributes of an attention node that tiled_attention knows.
Attributes tiled_attributes(Attributes attributes);

}  // namespace autograph

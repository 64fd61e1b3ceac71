// The gradient of attention through tiled_attention.
#pragma once

#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"

namespace autograph {

/// What a node of tiled_attention reads; the mask may be invalid.
struct TiledOperands {
  Var q, k, v, mask;
  Attributes attributes;
};

/// {gq, gk, gv} of a node of tiled_attention with outputs {y, log_sum_exp}, from what flows into them; nothing flows
/// into the sums where `of_sums` is invalid. With `with_mask` also that of the mask, [.., q heads, queries, keys].
std::vector<Var> tiled_gradients(const TiledOperands& operands, const std::vector<Var>& outputs, const Var& gy,
                                 const Var& of_sums, bool with_mask);

/// The attributes of an attention node that tiled_attention knows.
Attributes tiled_attributes(Attributes attributes);

}  // namespace autograph

// Calls of attention as calls of tiled_attention, for their gradient.
#pragma once

#include <optional>
#include <vector>

#include "autograph/builder.h"
#include "autograph/op_def.h"
#include "ops/attention/tiled_attention.h"

namespace autograph {

/// The call of a node of attention with the cache in front of the keys and values and padded keys hidden by the mask;
/// nothing where tiled_attention has no such call.
std::optional<TiledOperands> find_tiled_call(VjpContext& context);

}  // namespace autograph

// What instance and group normalization share: each instance's channels in groups, every group normalised by its own
// mean and population variance, then scaled and shifted per channel.
#pragma once

#include <cstdint>

#include "autograph/op_def.h"

namespace autograph {

/// y = (x - mean) / sqrt(var + epsilon) * scale[c] + bias[c] where mean and var are those of the channel's group;
/// x is [batch, channels, ...] and scale and bias are inputs 1 and 2 of the call.
void normalize_groups(const OpCall& call, int64_t num_groups);

/// Throws ShapeError unless x has rank 2 or more and scale and bias are [channels]; sets the type of y.
void infer_channel_groups(InferContext& context);

}  // namespace autograph

// Typed builders of normalizations. Shapes: the output has the shape of `x`.
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// Normalises each channel (dim 1 of x) with given statistics; scale, bias, mean and variance are [channels].
Var batch_normalization(Var x, Var scale, Var bias, Var mean, Var variance, float epsilon = 1e-5f);

/// Normalises over the dims from `axis` on; scale and bias (may be invalid) broadcast to x.
Var layer_normalization(Var x, Var scale, Var bias = {}, int64_t axis = -1, float epsilon = 1e-5f);

}  // namespace autograph

// What stands around an image.
#pragma once

#include "autograph/nn/layers.h"

namespace autograph::nn {

/// x [n, c, spatial...] with pads before each spatial axis, then behind each; `value` is for zeros alone.
Var padded(const Var& x, const Sizes& pads, PaddingMode mode, double value = 0);

}  // namespace autograph::nn

// One number for each spatial axis, or one for all of them.
#pragma once

#include "autograph/nn/layers.h"

namespace autograph::nn {

/// `sizes` with a number for each of `axes`; ValueError, which says `what` they are, for another count than 1 or that.
Sizes for_axes(const Sizes& sizes, size_t axes, const char* what);

/// How many spatial axes x [n, c, spatial...] has; ShapeError, which says `what` asks, where there are none.
size_t spatial_axes(const Var& x, const char* what);

}  // namespace autograph::nn

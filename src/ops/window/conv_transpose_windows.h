// Where the windows of conv_transpose lie.
#pragma once

#include "ops/window/window_geometry.h"

namespace autograph {

/// One window per spatial axis of a call with these extents of x and w, seen from the result: it slides over y, so that
/// `in` is y's extent and `out` is x's.
std::vector<WindowAxis> conv_transpose_windows(const Attributes& attributes, std::span<const int64_t> x,
                                               std::span<const int64_t> w);

}  // namespace autograph

#include <algorithm>
#include <utility>

#include "autograph/nn/layers.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "nn/sizes.h"

namespace autograph::nn {

Var AdaptivePool::pooled(const Var& x, const Sizes& kernel, const Sizes& stride) const {
  const PoolOptions options{.kernel = kernel, .strides = stride};
  return is_max_ ? max_pool(x, options) : average_pool(x, options);
}

// A pool for each window: they differ in length and distance.
Var AdaptivePool::pooled_along(const Var& x, size_t axis, int64_t output) const {
  const auto at = static_cast<int64_t>(axis);
  const int64_t extent = x.shape()[at].value();
  if (extent == output) return x;
  std::vector<Var> windows;
  for (int64_t i = 0; i < output; ++i) {
    const int64_t begin = i * extent / output, end = ((i + 1) * extent + output - 1) / output;
    Sizes kernel(static_cast<size_t>(x.rank()) - 2, 1);
    kernel[axis - 2] = end - begin;
    windows.push_back(pooled(slice(x, {begin}, {end}, {at}), kernel, {}));
  }
  return concat(windows, at);
}

Var AdaptivePool::forward(const Var& x) {
  const size_t axes = spatial_axes(x, "adaptive pool");
  Sizes output = for_axes(output_, axes, "output");
  if (output == Sizes(axes, 1)) return is_max_ ? global_max_pool(x) : global_average_pool(x);
  Sizes window;
  bool is_even = true;
  for (size_t axis = 0; axis < axes; ++axis) {
    const Dim extent = x.shape()[static_cast<int64_t>(axis) + 2];
    AG_CHECK_USER(extent.is_known() && output[axis] >= 0, ShapeError,
                  "[nn] adaptive pool: expected known extents and outputs of 0 or more, got {} and {}",
                  to_string(x.type()), to_string(output));
    if (output[axis] == 0) output[axis] = extent.value();
    window.push_back(extent.value() / output[axis]);
    is_even = is_even && extent.value() % output[axis] == 0;
  }
  if (is_even) return pooled(x, window, window);
  // The last axis first: of equal elements the first one, counted along rows, gets the gradient, as torch has it.
  Var y = x;
  for (size_t axis = axes; axis-- > 0;) y = pooled_along(y, axis + 2, output[axis]);
  return y;
}

}  // namespace autograph::nn

#include "ops/window/conv_gradients.h"

#include <algorithm>
#include <numeric>

#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "ops/gradients.h"

namespace autograph {
namespace {

Dims extents_of(std::span<const WindowAxis> axes, int64_t WindowAxis::*member) {
  Dims extents;
  for (const WindowAxis& axis : axes) extents.push_back(axis.*member);
  return extents;
}

// What lies behind the last window when it is above 0, what of the last window is cut off when it is below.
int64_t left_over(const WindowAxis& axis) { return axis.in - axis.reach(); }

// A convolution with these windows, and padding for all of them.
ConvOptions options_of(std::span<const WindowAxis> axes, int64_t group) {
  ConvOptions options;
  options.group = group;
  options.strides = extents_of(axes, &WindowAxis::stride);
  options.dilations = extents_of(axes, &WindowAxis::dilation);
  options.pads = extents_of(axes, &WindowAxis::pad_begin);
  for (const WindowAxis& axis : axes) options.pads.push_back(std::max<int64_t>(0, -left_over(axis)));
  return options;
}

std::vector<int64_t> channels_first(int64_t rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[0], perm[1]);
  return perm;
}

// [N, G * C, ...] as [C, G * N, ...]: the images of a group become its channels.
Var groups_of_images(const Var& x, int64_t group) {
  if (group == 1) return transpose(x, channels_first(x.rank()));
  Dims split{-1, group, x.dim(1) / group}, joined{x.dim(1) / group, -1};
  std::vector<int64_t> perm{2, 1, 0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) {
    split.push_back(x.dim(axis));
    joined.push_back(x.dim(axis));
    perm.push_back(axis + 1);
  }
  return reshape(transpose(reshape(x, split), perm), joined);
}

}  // namespace

Var spread_by_weights(const Var& y, const Var& w, std::span<const WindowAxis> axes, int64_t group) {
  ConvOptions options;
  options.group = group;
  options.strides = extents_of(axes, &WindowAxis::stride);
  options.dilations = extents_of(axes, &WindowAxis::dilation);
  options.pads = extents_of(axes, &WindowAxis::pad_begin);
  for (const WindowAxis& axis : axes) {
    options.pads.push_back(std::max<int64_t>(0, -left_over(axis)));
    options.output_padding.push_back(std::max<int64_t>(0, left_over(axis)));
  }
  return conv_transpose(y, w, {}, options);
}

Var correlate(const Var& x, const Var& y, std::span<const WindowAxis> axes, int64_t group) {
  return conv_grad_weight(x, y, extents_of(axes, &WindowAxis::kernel), options_of(axes, group));
}

Var convolve_windows(const Var& x, const Var& w, std::span<const WindowAxis> axes, int64_t group) {
  const Var y = conv(x, w, {}, options_of(axes, group));
  // Padding of a whole stride or more gives further windows.
  std::vector<int64_t> begins, ends, cut;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    begins.push_back(0);
    ends.push_back(axes[axis].out);
    cut.push_back(static_cast<int64_t>(axis) + 2);
  }
  return slice(y, begins, ends, cut);
}

// The weights slide over x as far as they have elements: y becomes the weights of a convolution whose stride is the
// dilation, and the other way round.
Var correlate_by_conv(const Var& x, const Var& y, std::span<const WindowAxis> axes, int64_t group) {
  ConvOptions options;
  options.group = group;
  options.strides = extents_of(axes, &WindowAxis::dilation);
  options.dilations = extents_of(axes, &WindowAxis::stride);
  options.pads = extents_of(axes, &WindowAxis::pad_begin);
  for (const WindowAxis& axis : axes) options.pads.push_back(std::max<int64_t>(0, -left_over(axis)));
  const Var images = groups_of_images(x, group);
  Var w = transpose(conv(images, transpose(y, channels_first(y.rank())), {}, options), channels_first(x.rank()));
  // Positions beyond the kernel, which a stride has left over.
  std::vector<int64_t> begins, ends, cut;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const int64_t padded = axes[axis].in + options.pads[axis] + options.pads[axis + axes.size()];
    const int64_t window = (axes[axis].out - 1) * axes[axis].stride + 1;
    if ((padded - window) / axes[axis].dilation + 1 == axes[axis].kernel) continue;
    begins.push_back(0);
    ends.push_back(axes[axis].kernel);
    cut.push_back(static_cast<int64_t>(axis) + 2);
  }
  return cut.empty() ? w : slice(w, begins, ends, cut);
}

Var sum_of_windows(const Var& y, std::span<const WindowAxis> axes) {
  Dims taps{y.dim(1), 1};
  for (const WindowAxis& axis : axes) taps.push_back(axis.kernel);
  return spread_by_weights(y, expand(scalar_like(y, 1), taps), axes, y.dim(1));
}

Var sum_of_channels(const Var& y) {
  std::vector<int64_t> axes{0};
  for (int64_t axis = 2; axis < y.rank(); ++axis) axes.push_back(axis);
  return reduce_sum(y, axes, false);
}

}  // namespace autograph

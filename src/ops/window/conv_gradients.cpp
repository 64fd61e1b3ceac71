#include "ops/window/conv_gradients.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "ops/defs.h"
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

// The spatial extents as i64 [axes], computed while running where one is open.
Var spatial_extents(const Var& x) { return slice(extents_of(x), {2}, {x.rank()}, {0}); }

Var integers_like(const Var& like, const Dims& values) { return constant_like(like, Tensor::vector(values)); }

// [N, G * C, ...] as [C, G * N, ...]: the images of a group become its channels.
Var groups_of_images(const Var& x, int64_t group) {
  if (group == 1) return transpose(x, channels_first(x.rank()));
  const Var images = slice(extents_of(x), {0}, {1}, {0}), spatial = spatial_extents(x);
  const Dim& channels = x.shape()[1];
  const int64_t of_group = channels.is_known() ? channels.value() / group : -1;
  std::vector<int64_t> perm{2, 1, 0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) perm.push_back(axis + 1);
  const Var split = reshape(x, concat({images, integers_like(x, {group, of_group}), spatial}, 0));
  return reshape(transpose(split, perm), concat({integers_like(x, {of_group < 0 ? 0 : of_group, -1}), spatial}, 0));
}

// ---- Open extents: paddings are computed while running -------------------------------------------------------------

// The windows over x, where its spatial extents are known.
std::optional<std::vector<WindowAxis>> known_windows_of(const WindowSpec& spec, const Var& x) {
  const Shape spatial(std::vector<Dim>(x.shape().dims().begin() + 2, x.shape().dims().end()));
  if (!spatial.is_static()) return std::nullopt;
  return resolve_windows(spec, spatial.static_dims());
}

bool is_same(const WindowSpec& spec) { return spec.auto_pad == "SAME_UPPER" || spec.auto_pad == "SAME_LOWER"; }

// By how much the windows of which y has elements are longer than x, one behind the other.
Var elements_beyond(const WindowSpec& spec, const Var& x, const Var& y) {
  Dims spans;
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    spans.push_back((spec.kernel[axis] - 1) * spec.dilations[axis] + 1);
  }
  const Var reach = (spatial_extents(y) - 1) * integers_like(y, spec.strides) + integers_like(y, spans);
  return reach - spatial_extents(x);
}

Var begins_of(const WindowSpec& spec, const Var& like) {
  return integers_like(like, Dims(spec.pads.begin(), spec.pads.begin() + std::ssize(spec.kernel)));
}

// Elements in front of x and behind it, i64 [axes]; as many behind as the last window needs.
struct Paddings {
  Var begins, ends;
};

Paddings paddings(const WindowSpec& spec, const Var& x, const Var& y) {
  const Var beyond = elements_beyond(spec, x, y);
  if (is_same(spec)) {
    const Var total = max({beyond, scalar_like(beyond, 0)});
    const Var half = total / 2;
    const Var begins = spec.auto_pad == "SAME_UPPER" ? half : total - half;
    return {begins, beyond - begins};
  }
  const Var begins = begins_of(spec, y);
  return {begins, beyond - begins};
}

// Adds elements of 0 around the spatial axes, and removes them where `pads` are below 0.
Var padded(const Var& x, const Paddings& pads) {
  Dims axes(static_cast<size_t>(x.rank() - 2));
  std::iota(axes.begin(), axes.end(), 2);
  return apply(pad_def(), {x, concat({pads.begins, pads.ends}, 0), {}, integers_like(x, axes)});
}

PoolOptions pool_options(const WindowSpec& spec) {
  PoolOptions options;
  options.kernel = spec.kernel;
  options.strides = spec.strides;
  options.dilations = spec.dilations;
  options.auto_pad = spec.auto_pad;
  options.ceil_mode = spec.ceil_mode;
  if (spec.auto_pad == "NOTSET") options.pads = spec.pads;
  return options;
}

// How many taps of each window lie inside of an image with these spatial extents, at least 1, in the dtype of `like`.
Var count_taps(const Var& spatial, const Var& like, const WindowSpec& spec) {
  const Var extents = concat({integers_like(like, {1, 1}), spatial}, 0);
  const Var ones = apply(expand_def(), {scalar_like(like, 1), extents});
  const Var counts = lp_pool(ones, 1, pool_options(spec));
  return max({counts, scalar_like(counts, 1)});
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
  const ConvOptions options = options_of(axes, group);
  const Var y = conv(x, w, {}, options);
  // Padding of a whole stride or more gives further windows.
  std::vector<int64_t> begins, ends, cut;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const int64_t further = (left_over(axes[axis]) + options.pads[axis + axes.size()]) / axes[axis].stride;
    if (further == 0) continue;
    begins.push_back(0);
    ends.push_back(-further);
    cut.push_back(static_cast<int64_t>(axis) + 2);
  }
  return cut.empty() ? y : slice(y, begins, ends, cut);
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

ConvOptions without_pads(const WindowSpec& spec, int64_t group) {
  ConvOptions options;
  options.group = group;
  options.strides = spec.strides;
  options.dilations = spec.dilations;
  return options;
}

Var padded_to_windows(const Var& x, const Var& begins, const WindowSpec& spec, const Var& y) {
  return padded(x, {begins, elements_beyond(spec, x, y) - begins});
}

Var spread_by_weights(const Var& y, const Var& w, const WindowSpec& spec, const Var& x, int64_t group) {
  const auto axes = known_windows_of(spec, x);
  return axes ? spread_by_weights(y, w, *axes, group) : spread_by_weights_of(y, w, spec, x, group);
}

Var spread_by_weights_of(const Var& y, const Var& w, const WindowSpec& spec, const Var& x, int64_t group) {
  const Var whole = conv_transpose(y, w, {}, without_pads(spec, group));
  const Paddings pads = paddings(spec, x, y);
  return reshape_as(padded(whole, {-pads.begins, -pads.ends}), x);
}

Var convolve_windows_of(const Var& x, const Var& w, const WindowSpec& spec, const Var& y, int64_t group) {
  const Var image = padded_to_windows(x, begins_of(spec, x), spec, y);
  return reshape_as(conv(image, w, {}, without_pads(spec, group)), y);
}

// The weights slide over x as far as they have elements: y becomes the weights of a convolution whose stride is the
// dilation, and the other way round. What padding and strides give beyond the kernel is cut off.
Var correlate_by_conv(const Var& x, const Var& y, const WindowSpec& spec, int64_t group) {
  ConvOptions options;
  options.group = group;
  options.strides = spec.dilations;
  options.dilations = spec.strides;
  options.pads = spec.pads;
  const Var images = groups_of_images(x, group);
  const Var w = transpose(conv(images, transpose(y, channels_first(y.rank())), {}, options), channels_first(x.rank()));
  Dims begins(spec.kernel.size(), 0), axes(spec.kernel.size());
  std::iota(axes.begin(), axes.end(), 2);
  return slice(w, begins, spec.kernel, axes);
}

Var correlate(const Var& x, const Var& y, const WindowSpec& spec, int64_t group) {
  if (const auto axes = known_windows_of(spec, x)) return correlate(x, y, *axes, group);
  const bool is_padded_before = is_same(spec);
  ConvOptions options = without_pads(spec, group);
  if (!is_padded_before) options.pads = spec.pads;
  return conv_grad_weight(is_padded_before ? padded(x, paddings(spec, x, y)) : x, y, spec.kernel, options);
}

Var sum_of_windows(const Var& y, const WindowSpec& spec, const Var& x) {
  if (const auto axes = known_windows_of(spec, x)) return sum_of_windows(y, *axes);
  const int64_t channels = x.dim(1);
  Dims taps{channels, 1};
  taps.insert(taps.end(), spec.kernel.begin(), spec.kernel.end());
  return spread_by_weights(y, expand(scalar_like(y, 1), taps), spec, x, channels);
}

Var count_taps_inside(const Var& x, const WindowSpec& spec) { return count_taps(spatial_extents(x), x, spec); }

// Without padding of its own the padded image may have a further window, which begins in the padding behind x.
Var count_taps_padded(const Var& x, const WindowSpec& spec, const Var& y) {
  WindowSpec whole = spec;
  whole.pads.assign(spec.pads.size(), 0);
  Dims pads;
  for (size_t axis = 0; axis < spec.kernel.size(); ++axis) {
    pads.push_back(spec.pads[axis] + spec.pads[axis + spec.kernel.size()]);
  }
  const Var counts = count_taps(spatial_extents(x) + integers_like(x, pads), x, whole);
  Dims axes(pads.size());
  std::iota(axes.begin(), axes.end(), 2);
  const Var begins = integers_like(x, Dims(pads.size(), 0));
  return apply(slice_def(), {counts, begins, spatial_extents(y), integers_like(x, axes)});
}

}  // namespace autograph

// Convolutions and pools.
#include "autograph/nn/layers.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/index.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "nn/default_init.h"
#include "nn/padding.h"
#include "nn/sizes.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph::nn {

Sizes for_axes(const Sizes& sizes, size_t axes, const char* what) {
  if (sizes.size() == 1) return Sizes(axes, sizes[0]);
  AG_CHECK_USER(sizes.size() == axes, ValueError, "[nn] {}: expected 1 number or {}, got {}", what, axes, sizes.size());
  return sizes;
}

size_t spatial_axes(const Var& x, const char* what) {
  AG_CHECK_USER(x.shape().has_rank() && x.rank() >= 3, ShapeError, "[nn] {}: expected rank 3 or more, got {}", what,
                to_string(x.type()));
  return static_cast<size_t>(x.rank() - 2);
}

namespace {

// Both sides alike, begins first.
std::vector<int64_t> pads_of(const Sizes& padding, size_t axes) {
  Sizes pads = for_axes(padding, axes, "padding");
  pads.insert(pads.end(), pads.begin(), pads.end());
  return pads;
}

// What keeps extents: an odd element more stands behind.
std::vector<int64_t> keeping_pads(const Dims& weight, const Sizes& dilation) {
  Sizes before, behind;
  for (size_t axis = 0; axis < dilation.size(); ++axis) {
    const int64_t both = dilation[axis] * (weight[axis + 2] - 1);
    before.push_back(both / 2);
    behind.push_back(both - both / 2);
  }
  before.insert(before.end(), behind.begin(), behind.end());
  return before;
}

Dims weight_dims(int64_t first, int64_t second, const Sizes& kernel) {
  Dims dims{first, second};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  return dims;
}

int64_t share(int64_t channels, int64_t groups) {
  AG_CHECK_USER(groups >= 1 && channels % groups == 0, ValueError,
                "[nn] groups: expected a divisor of the channels ({}), got {}", channels, groups);
  return channels / groups;
}

ConvOptions options_of(const ConvSettings& settings, size_t axes) {
  return {.strides = for_axes(settings.stride, axes, "stride"),
          .pads = pads_of(settings.padding, axes),
          .dilations = for_axes(settings.dilation, axes, "dilation"),
          .group = settings.groups};
}

PoolOptions options_of(const Sizes& kernel, const PoolSettings& settings, const Var& x) {
  const size_t axes = spatial_axes(x, "pool");
  return {.kernel = for_axes(kernel, axes, "kernel"),
          .strides = for_axes(settings.stride.empty() ? kernel : settings.stride, axes, "stride"),
          .pads = pads_of(settings.padding, axes),
          .ceil_mode = settings.ceil_mode,
          .count_include_pad = settings.count_include_pad};
}

}  // namespace

Conv::Conv(int64_t in, int64_t out, Sizes kernel, ConvSettings settings)
    : axes_(kernel.size()),
      settings_(std::move(settings)),
      weight_(add_parameter("weight", weight_dims(out, share(in, settings_.groups), kernel), torch_weight())) {
  share(out, settings_.groups);
  const Sizes stride = for_axes(settings_.stride, axes_, "stride");
  AG_CHECK_USER(!settings_.keeps_extents || stride == Sizes(axes_, 1), ValueError,
                "[nn] conv: expected stride 1 where extents are kept, got {}", to_string(stride));
  if (settings_.bias) bias_ = &add_parameter("bias", {out}, torch_bias(fans_of(weight_.dims()).in));
}

Var Conv::forward(const Var& x) {
  ConvOptions options = options_of(settings_, axes_);
  if (settings_.keeps_extents) options.pads = keeping_pads(weight_.dims(), options.dilations);
  Var image = x;
  if (settings_.padding_mode != PaddingMode::zeros) {
    image = padded(x, std::exchange(options.pads, {}), settings_.padding_mode);
  }
  return conv(image, weight_.beside(x), bias_ ? bias_->beside(x) : Var(), options);
}

Conv1d::Conv1d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings)
    : Conv(in, out, for_axes(kernel, 1, "kernel"), std::move(settings)) {}
Conv2d::Conv2d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings)
    : Conv(in, out, for_axes(kernel, 2, "kernel"), std::move(settings)) {}
Conv3d::Conv3d(int64_t in, int64_t out, Sizes kernel, ConvSettings settings)
    : Conv(in, out, for_axes(kernel, 3, "kernel"), std::move(settings)) {}

ConvTranspose::ConvTranspose(int64_t in, int64_t out, Sizes kernel, ConvSettings settings)
    : axes_(kernel.size()),
      settings_(std::move(settings)),
      weight_(add_parameter("weight", weight_dims(in, share(out, settings_.groups), kernel), torch_weight())) {
  share(in, settings_.groups);
  AG_CHECK_USER(settings_.padding_mode == PaddingMode::zeros && !settings_.keeps_extents, ValueError,
                "[nn] conv transpose: expected padding with zeros, got a padding_mode or keeps_extents");
  if (settings_.bias) bias_ = &add_parameter("bias", {out}, torch_bias(fans_of(weight_.dims()).in));
}

Var ConvTranspose::forward(const Var& x) {
  ConvOptions options = options_of(settings_, axes_);
  options.output_padding = for_axes(settings_.output_padding, axes_, "output_padding");
  return conv_transpose(x, weight_.beside(x), bias_ ? bias_->beside(x) : Var(), options);
}

MaxPool::MaxPool(Sizes kernel, PoolSettings settings) : kernel_(std::move(kernel)), settings_(std::move(settings)) {}

Var MaxPool::forward(const Var& x) { return max_pool(x, options_of(kernel_, settings_, x)); }

namespace {

// How many elements a channel of a sample has, i64 []. The op counts places through all of them, as ONNX does.
Var elements_of_plane(const Var& x) {
  Var count = constant_like(x, Tensor::scalar<int64_t>(1));
  for (int64_t axis = 2; axis < x.rank(); ++axis) count *= extent_of(x, axis);
  return count;
}

// Of what makes y when it is pooled in whole windows, of which each goes `stride` further.
Dims unpooled_extents(const Var& y, const PoolOptions& options) {
  AG_CHECK_USER(y.type().is_static(), ShapeError,
                "[nn] max unpool: expected known extents, or those of the result, got {}", to_string(y.type()));
  Dims extents = y.shape().static_dims();
  for (size_t axis = 0; axis < options.kernel.size(); ++axis) {
    int64_t& extent = extents[axis + 2];
    extent = (extent - 1) * options.strides[axis] + options.kernel[axis] - 2 * options.pads[axis];
  }
  return extents;
}

}  // namespace

std::pair<Var, Var> MaxPool::with_indices(const Var& x) {
  const std::vector<Var> both =
      apply_all(max_pool_def(), {x}, pool_options_attributes(options_of(kernel_, settings_, x)), 2);
  return {both[0], mod(both[1], elements_of_plane(x))};
}

MaxUnpool::MaxUnpool(Sizes kernel, PoolSettings settings)
    : kernel_(std::move(kernel)), settings_(std::move(settings)) {}

Var MaxUnpool::unpool(const Var& y, const Var& indices, const Dims& extents) {
  const Dims all = extents.empty() ? unpooled_extents(y, options_of(kernel_, settings_, y)) : extents;
  AG_CHECK_USER(all.size() == static_cast<size_t>(y.rank()), ShapeError,
                "[nn] max unpool: expected as many extents as {} has, got {}", to_string(y.type()), to_string(all));
  const std::vector<int64_t> planes{all[0], all[1], -1};
  const Var zeros = reshape(constant_like(y, Tensor::zeros(y.dtype(), all)), planes);
  return reshape(scatter_elements(zeros, reshape(indices, planes), reshape(y, planes), 2), all);
}

AvgPool::AvgPool(Sizes kernel, PoolSettings settings) : kernel_(std::move(kernel)), settings_(std::move(settings)) {}

Var AvgPool::forward(const Var& x) { return average_pool(x, options_of(kernel_, settings_, x)); }

Var GlobalAvgPool::forward(const Var& x) { return flatten(global_average_pool(x), 1); }

}  // namespace autograph::nn

// Convolutions and pools.
#include "autograph/nn/layers.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/window.h"
#include "base/check.h"
#include "nn/default_init.h"

namespace autograph::nn {
namespace {

// One number for each axis.
Sizes for_axes(const Sizes& sizes, size_t axes, const char* what) {
  if (sizes.size() == 1) return Sizes(axes, sizes[0]);
  AG_CHECK_USER(sizes.size() == axes, ValueError, "[nn] {}: expected 1 number or {}, got {}", what, axes, sizes.size());
  return sizes;
}

// Both sides alike, begins first.
std::vector<int64_t> pads_of(const Sizes& padding, size_t axes) {
  Sizes pads = for_axes(padding, axes, "padding");
  pads.insert(pads.end(), pads.begin(), pads.end());
  return pads;
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
  AG_CHECK_USER(x.shape().has_rank() && x.rank() >= 3, ShapeError, "[nn] pool: expected rank 3 or more, got {}",
                to_string(x.type()));
  const auto axes = static_cast<size_t>(x.rank() - 2);
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
  if (settings_.bias) bias_ = &add_parameter("bias", {out}, torch_bias(fans_of(weight_.dims()).in));
}

Var Conv::forward(const Var& x) {
  return conv(x, weight_.beside(x), bias_ ? bias_->beside(x) : Var(), options_of(settings_, axes_));
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
  if (settings_.bias) bias_ = &add_parameter("bias", {out}, torch_bias(fans_of(weight_.dims()).in));
}

Var ConvTranspose::forward(const Var& x) {
  ConvOptions options = options_of(settings_, axes_);
  options.output_padding = for_axes(settings_.output_padding, axes_, "output_padding");
  return conv_transpose(x, weight_.beside(x), bias_ ? bias_->beside(x) : Var(), options);
}

MaxPool::MaxPool(Sizes kernel, PoolSettings settings) : kernel_(std::move(kernel)), settings_(std::move(settings)) {}

Var MaxPool::forward(const Var& x) { return max_pool(x, options_of(kernel_, settings_, x)); }

AvgPool::AvgPool(Sizes kernel, PoolSettings settings) : kernel_(std::move(kernel)), settings_(std::move(settings)) {}

Var AvgPool::forward(const Var& x) { return average_pool(x, options_of(kernel_, settings_, x)); }

Var GlobalAvgPool::forward(const Var& x) { return flatten(global_average_pool(x), 1); }

}  // namespace autograph::nn

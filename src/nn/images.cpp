#include "autograph/nn/images.h"

#include <array>
#include <numeric>
#include <string>

#include "autograph/op_def.h"
#include "autograph/ops/shape.h"
#include "autograph/ops/vision.h"
#include "base/check.h"
#include "nn/padding.h"
#include "nn/sizes.h"
#include "ops/defs.h"
#include "ops/gradients.h"

namespace autograph::nn {
namespace {

// torch's order, (before, behind) from the last axis, as all before and then all behind.
Sizes from_first_axis(const Sizes& pads, size_t axes) {
  if (pads.size() == 1) return Sizes(2 * axes, pads[0]);
  AG_CHECK_USER(pads.size() % 2 == 0 && pads.size() <= 2 * axes, ValueError,
                "[nn] pad: expected 1 number or 2 for each of up to {} spatial axes, got {}", axes, pads.size());
  Sizes result(2 * axes, 0);
  for (size_t k = 0; k < pads.size() / 2; ++k) {
    result[axes - 1 - k] = pads[2 * k];
    result[2 * axes - 1 - k] = pads[2 * k + 1];
  }
  return result;
}

const char* pad_mode(PaddingMode mode) {
  constexpr std::array kModes{"constant", "reflect", "edge", "wrap"};
  return kModes.at(static_cast<size_t>(mode));
}

const char* resize_mode(Sampling mode) {
  constexpr std::array kModes{"nearest", "linear", "cubic"};
  return kModes.at(static_cast<size_t>(mode));
}

}  // namespace

Var padded(const Var& x, const Sizes& pads, PaddingMode mode, double value) {
  const auto axes = static_cast<int64_t>(pads.size() / 2);
  Sizes all{0, 0};
  all.insert(all.end(), pads.begin(), pads.begin() + axes);
  all.insert(all.end(), {0, 0});
  all.insert(all.end(), pads.begin() + axes, pads.end());
  return pad(x, all, pad_mode(mode), value == 0 ? Var() : scalar_like(x, value));
}

Pad::Pad(Sizes pads, PaddingMode mode, double value) : pads_(std::move(pads)), mode_(mode), value_(value) {}

Var Pad::forward(const Var& x) { return padded(x, from_first_axis(pads_, spatial_axes(x, "pad")), mode_, value_); }

PixelShuffle::PixelShuffle(int64_t factor) : Function([=](const Var& x) { return depth_to_space(x, factor, "CRD"); }) {}

PixelUnshuffle::PixelUnshuffle(int64_t factor)
    : Function([=](const Var& x) { return space_to_depth(x, factor, "CRD"); }) {}

ChannelShuffle::ChannelShuffle(int64_t groups)
    : Function([=](const Var& x) {
        spatial_axes(x, "channel shuffle");
        const Dim channels = x.shape()[1];
        AG_CHECK_USER(groups >= 1 && channels.is_known() && channels.value() % groups == 0, ShapeError,
                      "[nn] channel shuffle: expected channels that {} divides, got {}", groups, to_string(x.type()));
        const Var apart = reshape(x, {0, groups, channels.value() / groups, -1});
        return reshape_as(transpose(apart, {0, 2, 1, 3}), x);
      }) {}

Upsample::Upsample(UpsampleSettings settings) : settings_(std::move(settings)) {
  AG_CHECK_USER(settings_.factor.empty() != settings_.size.empty(), ValueError,
                "[nn] upsample: expected a factor or a size, got {}", settings_.size.empty() ? "neither" : "both");
  AG_CHECK_USER(!settings_.align_corners || settings_.mode != Sampling::nearest, ValueError,
                "[nn] upsample: expected linear or cubic sampling where corners are aligned, got nearest");
}

Var Upsample::forward(const Var& x) {
  const size_t axes = spatial_axes(x, "upsample");
  Sizes spatial(axes);
  std::iota(spatial.begin(), spatial.end(), 2);
  const bool is_nearest = settings_.mode == Sampling::nearest;
  const char* transform = is_nearest ? "asymmetric" : settings_.align_corners ? "align_corners" : "half_pixel";
  const Attributes attributes{{"mode", std::string(resize_mode(settings_.mode))},
                              {"coordinate_transformation_mode", std::string(transform)},
                              {"nearest_mode", std::string("floor")},
                              {"axes", spatial}};
  if (!settings_.size.empty()) {
    const Var size = constant_like(x, Tensor::vector(for_axes(settings_.size, axes, "size")));
    return apply(resize_def(), {x, Var(), Var(), size}, attributes);
  }
  std::vector<float> factor(settings_.factor.begin(), settings_.factor.end());
  if (factor.size() == 1) factor.resize(axes, factor[0]);
  return resize(x, factor, attributes);
}

}  // namespace autograph::nn

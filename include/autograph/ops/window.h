// Typed builders of the ops that slide a window: convolutions and pools. x is [N, C, spatial...] everywhere.
#pragma once

#include <string>
#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// How a convolution slides. Empty lists mean the default on every spatial axis.
struct ConvOptions {
  std::vector<int64_t> strides = {};         ///< One per spatial axis; default 1.
  std::vector<int64_t> pads = {};            ///< Begin of each spatial axis, then end of each; default 0.
  std::vector<int64_t> dilations = {};       ///< One per spatial axis; default 1.
  int64_t group = 1;                         ///< Divides the input and output channels.
  std::string auto_pad = "NOTSET";           ///< "SAME_UPPER", "SAME_LOWER" or "VALID" instead of `pads`.
  std::vector<int64_t> output_padding = {};  ///< conv_transpose: elements added at the end; default 0.
};

/// How a pool slides. Empty lists mean the default on every spatial axis.
struct PoolOptions {
  std::vector<int64_t> kernel;          ///< Extent of the window; one per spatial axis.
  std::vector<int64_t> strides = {};    ///< One per spatial axis; default 1.
  std::vector<int64_t> pads = {};       ///< Begin of each spatial axis, then end of each; default 0.
  std::vector<int64_t> dilations = {};  ///< One per spatial axis; default 1.
  bool ceil_mode = false;               ///< Does a partial last window count?
  bool count_include_pad = false;       ///< average_pool: does padding count in the divisor?
  std::string auto_pad = "NOTSET";      ///< "SAME_UPPER", "SAME_LOWER" or "VALID" instead of `pads`.
};

/// Parameters of lrn.
struct LrnOptions {
  float alpha = 1e-4F;  ///< Scale of the sum of squares.
  float beta = 0.75F;   ///< Exponent.
  float bias = 1.0F;    ///< Added to the scaled sum.
};

/// The attributes that all convolutions share: everything but output_padding.
Attributes conv_options_attributes(const ConvOptions& options);
/// The attributes that all pools share: everything but count_include_pad.
Attributes pool_options_attributes(const PoolOptions& options);

/// w is [M, C / group, kernel...], b is [M]; the result is [N, M, spatial...].
Var conv(Var x, Var w, Var b = {}, const ConvOptions& options = {});
/// Transposed convolution: w is [C, M / group, kernel...], b is [M]; the result is [N, M, spatial...].
Var conv_transpose(Var x, Var w, Var b = {}, const ConvOptions& options = {});
/// Gradient of the weights of a convolution with input x and the gradient gy [N, M, spatial...] of its output:
/// [M, C / group, kernel...]. `auto_pad` and `output_padding` of the options are not read.
Var conv_grad_weight(Var x, Var gy, std::vector<int64_t> kernel, const ConvOptions& options = {});
/// Largest element of each window: [N, C, spatial...].
Var max_pool(Var x, const PoolOptions& options);
/// Gradient of max_pool's input x where gy flows into its output: shape of x.
Var max_pool_grad(Var x, Var gy, const PoolOptions& options);
/// Mean of each window: [N, C, spatial...].
Var average_pool(Var x, const PoolOptions& options);
/// (sum |x|^p)^(1/p) over each window: [N, C, spatial...].
Var lp_pool(Var x, int64_t p, const PoolOptions& options);
/// x / (bias + alpha / size * sum of x^2 over `size` neighbouring channels)^beta: shape of x.
Var lrn(Var x, int64_t size, const LrnOptions& options = {});
/// Mean over all spatial positions: [N, C, 1...].
Var global_average_pool(Var x);
/// Largest element over all spatial positions: [N, C, 1...].
Var global_max_pool(Var x);
/// (sum |x|^p)^(1/p) over all spatial positions: [N, C, 1...].
Var global_lp_pool(Var x, int64_t p = 2);
/// Convolution of (x - x_zero) with (w - w_zero), bytes, in i32.
Var conv_integer(Var x, Var w, Var x_zero = {}, Var w_zero = {}, const ConvOptions& options = {});
/// Convolution whose taps are moved by `offset`, [N, offset_group * taps * r, spatial of y...], and scaled by `mask`.
/// `attributes`: strides, pads, dilations, group, offset_group.
Var deform_conv(Var x, Var w, Var offset, Var b = {}, Var mask = {}, Attributes attributes = {});
/// Depthwise convolution of x [N, C, length] with w [C, 1, k] over the past, its last k - 1 positions carried over: {y,
/// state [N, C, k - 1]}. activation: none, silu or swish.
std::vector<Var> causal_conv_with_state(Var x, Var w, Var b = {}, Var state = {},
                                        const std::string& activation = "none");
/// Adds columns [N, C * taps, positions] back into images [N, C, image_shape...]; `attributes`: strides, pads,
/// dilations.
Var col2im(Var x, Var image_shape, Var block_shape, Attributes attributes = {});
/// Largest elements of the bins of regions [n, 5] (batch, x1, y1, x2, y2): [n, C, pooled_shape...].
Var max_roi_pool(Var x, Var regions, std::vector<int64_t> pooled_shape, float spatial_scale = 1);
/// x at the positions in `indices`, zeros elsewhere: what max_pool with these options took it from.
Var max_unpool(Var x, Var indices, const PoolOptions& options, Var output_shape = {});

}  // namespace autograph

// The gradients of convolutions: conv, conv_transpose and conv_grad_weight, the sum over positions that makes the
// gradient of the weights, are each other's.
#pragma once

#include <span>

#include "autograph/builder.h"
#include "autograph/ops/window.h"
#include "ops/window/window_geometry.h"

namespace autograph {

/// What a convolution's input has to do with the gradient of its output: each y[n, m, o] adds y * w[m, c, k] to
/// x[n, c, o * stride - pad + k * dilation]. y [N, M, out...], w [M, C / group, kernel...], x [N, C, in...].
Var spread_by_weights(const Var& y, const Var& w, std::span<const WindowAxis> axes, int64_t group);

/// w[m, c, k] = sum over n and o of y[n, m, o] * x[n, c, o * stride - pad + k * dilation], c within the group of m.
/// x [N, C, in...], y [N, M, out...], the result [M, C / group, kernel...]; extents but N are known.
Var correlate(const Var& x, const Var& y, std::span<const WindowAxis> axes, int64_t group);

/// y[n, m, o] = sum over c and k of w[m, c, k] * x[n, c, o * stride - pad + k * dilation], as many windows as `axes`
/// say; where x has more elements than they say, by whole strides, so many more windows.
Var convolve_windows(const Var& x, const Var& w, std::span<const WindowAxis> axes, int64_t group);

/// The windows of a call of conv_grad_weight with these extents of x and gy; pad_end is what they reach beyond x.
std::vector<WindowAxis> conv_grad_weight_windows(const Attributes& attributes, std::span<const int64_t> x,
                                                 std::span<const int64_t> gy);

/// As spread_by_weights() with weights of 1 for each channel by itself: the sum of all y whose window has an element of
/// x. y and x are [N, C, ...].
Var sum_of_windows(const Var& y, std::span<const WindowAxis> axes);

// ---- The same where spatial extents may be open: paddings are then computed while running -------------------------

/// What flows into x, of known rank, where each y[n, m, o] adds y * w[m, c, k] to x[n, c, o * stride - pad + k *
/// dilation]; as many windows as y has elements. w has known extents.
Var spread_by_weights(const Var& y, const Var& w, const WindowSpec& spec, const Var& x, int64_t group);

/// What flows into the weights: sum over n and o of y[n, m, o] * x[n, c, o * stride - pad + k * dilation].
Var correlate(const Var& x, const Var& y, const WindowSpec& spec, int64_t group);

/// The same as a convolution, for devices that have kernels for no other one; paddings are those of `spec`.
Var correlate_by_conv(const Var& x, const Var& y, const WindowSpec& spec, int64_t group);

/// The sum of all y whose window has an element of x. y and x are [N, C, ...] with a known number of channels.
Var sum_of_windows(const Var& y, const WindowSpec& spec, const Var& x);

/// x with zeros in front of its spatial axes, `begins` of each (i64 [axes]), and behind them, or without the elements
/// that are too many: as the windows of `spec` without padding want it, which are as many as y has elements.
Var padded_to_windows(const Var& x, const Var& begins, const WindowSpec& spec, const Var& y);

/// Strides, dilations and groups of these windows.
ConvOptions without_pads(const WindowSpec& spec, int64_t group);

/// spread_by_weights(), correlate() and convolve_windows() of as many windows as y has, which may be fewer than fit; by
/// the pads of `spec`, which has no auto_pad.
Var spread_by_weights_of(const Var& y, const Var& w, const WindowSpec& spec, const Var& x, int64_t group);
Var convolve_windows_of(const Var& x, const Var& w, const WindowSpec& spec, const Var& y, int64_t group);

/// How many taps of each window lie inside of x: [1, 1, out...], at least 1, in the dtype of x.
Var count_taps_inside(const Var& x, const WindowSpec& spec);

/// The same of the padded x, for the windows that y has elements for.
Var count_taps_padded(const Var& x, const WindowSpec& spec, const Var& y);

/// The sum over the dims but 1: the gradient of a bias.
Var sum_of_channels(const Var& y);

}  // namespace autograph

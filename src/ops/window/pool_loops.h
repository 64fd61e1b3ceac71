// What the pools share: x is [N, C, spatial...], each channel is pooled alone over windows of extent kernel_shape.
#pragma once

#include "base/checked_int.h"
#include "ops/window/window_geometry.h"

namespace autograph {

/// Attributes of pools: kernel_shape, the window's, ceil_mode, then `extra`.
std::vector<AttributeSpec> pool_attributes(std::vector<AttributeSpec> extra = {});

/// Shape of the output of pooling input 0. Throws ShapeError or ValueError when the window does not fit.
Shape infer_pool_shape(InferContext& context);

/// Windows of a pool whose shapes infer_pool_shape has accepted.
std::vector<WindowAxis> pool_windows(const Attributes& attributes, const TensorView& x);

/// The windows of the pool that a rule is asked about; throws UnsupportedError while its rank or the number of channels
/// is open.
WindowSpec pool_spec(VjpContext& context);

/// By output on one axis: how many taps of its window count in a mean, those in the padding included or not.
std::vector<float> counted_taps(const WindowAxis& axis, bool includes_pads);

/// One flop per window tap.
OpCost pool_cost(const CostContext& context);

/// A random legal x (f32) and window attributes.
OpSample sample_pool(Random& random);

/// Which of the taps (offsets from `x`) has the largest element: of equal ones the first, and the first NaN before all;
/// -1 for none.
template <class T>
int64_t find_maximum(const T* x, std::span<const int64_t> taps) {
  int64_t best = taps.empty() ? -1 : taps[0];
  for (const int64_t tap : taps) {
    if (x[best] != x[best]) break;
    if (x[tap] > x[best] || x[tap] != x[tap]) best = tap;
  }
  return best;
}

/// Calls pool(position, input offsets inside one channel, base of the channel in x, flat output index) for every
/// output element.
template <class Pool>
void for_each_pool(std::span<const WindowAxis> axes, const TensorView& x, Pool&& pool) {
  const int64_t channels = x.dim(0) * x.dim(1);
  const int64_t in_positions = checked_product(x.dims().subspan(2), "pool");
  int64_t out_positions = 1;
  for (const WindowAxis& axis : axes) out_positions *= axis.out;
  std::vector<int64_t> taps;
  for_each_window(axes, [&](std::span<const int64_t> at, int64_t position) {
    taps.clear();
    for_each_tap(axes, at, [&](int64_t, int64_t input) { taps.push_back(input); });
    for (int64_t channel = 0; channel < channels; ++channel) {
      pool(at, std::span<const int64_t>(taps), channel * in_positions, channel * out_positions + position);
    }
  });
}

}  // namespace autograph

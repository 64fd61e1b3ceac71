// What conv, conv_integer and qlinear_conv share: checks of the shapes and the loop over multiply-adds.
//
// x is [N, C, spatial...], w is [M, C / group, kernel...], y is [N, M, spatial...]. Output channel m belongs to group
// m / (M / group) and reads that group's input channels alone.
#pragma once

#include "ops/window/window_geometry.h"

namespace autograph {

/// Shape of the output of a convolution of input `x_slot` with weights `w_slot`; `bias_slot` may be absent.
/// Throws ShapeError or ValueError when they do not fit together.
Shape infer_conv_shape(InferContext& context, size_t x_slot, size_t w_slot, size_t bias_slot);

/// Throws ShapeError unless the zero point (or scale) at `slot`, where given, is a scalar, [1] or [channels].
void check_zero_point(const InferContext& context, size_t slot, const Dim& channels);

/// The attributes of convolutions: the window's, group and kernel_shape.
std::vector<AttributeSpec> conv_attributes();

/// 2 flops per multiply-add, x and w being the inputs at these slots.
OpCost conv_cost(const CostContext& context, size_t x_slot, size_t w_slot);

/// A random legal x (f32, values in [low, high]), w, bias and attributes.
OpSample sample_conv(Random& random);

/// Sizes of a convolution whose shapes are known.
struct ConvSizes {
  int64_t batch;
  int64_t in_channels;
  int64_t out_channels;
  int64_t group;
  int64_t in_positions;      ///< Product of the input's spatial extents.
  int64_t out_positions;     ///< Product of the output's spatial extents.
  int64_t kernel_positions;  ///< Product of the kernel's extents.
  std::vector<WindowAxis> axes;
};

/// The sizes for a call that infer_conv_shape has accepted.
ConvSizes conv_sizes(const Attributes& attributes, const TensorView& x, const TensorView& w);

/// Calls emit(flat_output_index, out_channel, sum) for every output element, where sum adds up
/// product(flat_x_index, flat_w_index, out_channel) over the taps inside the input, starting from zero.
template <class Sum, class Product, class Emit>
void convolve(const ConvSizes& sizes, Product&& product, Emit&& emit) {
  const int64_t group_in = sizes.in_channels / sizes.group;
  const int64_t group_out = sizes.out_channels / sizes.group;
  std::vector<std::pair<int64_t, int64_t>> taps;  // (offset in the kernel, offset in one channel of x)
  for_each_window(sizes.axes, [&](std::span<const int64_t> at, int64_t position) {
    taps.clear();
    for_each_tap(sizes.axes, at, [&](int64_t kernel, int64_t input) { taps.emplace_back(kernel, input); });
    for (int64_t row = 0; row < sizes.batch * sizes.out_channels; ++row) {
      const int64_t m = row % sizes.out_channels;
      const int64_t first_channel = row / sizes.out_channels * sizes.in_channels + m / group_out * group_in;
      Sum sum = 0;
      for (int64_t c = 0; c < group_in; ++c) {
        const int64_t x_base = (first_channel + c) * sizes.in_positions;
        const int64_t w_base = (m * group_in + c) * sizes.kernel_positions;
        for (const auto& [kernel, input] : taps) sum += product(x_base + input, w_base + kernel, m);
      }
      emit(row * sizes.out_positions + position, m, sum);
    }
  });
}

}  // namespace autograph

// What resize reads: the scale of each axis, and which elements each output coordinate mixes. The reference and the
// kernels share it.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "autograph/attribute.h"
#include "autograph/tensor.h"

namespace autograph {

/// One axis of a resize.
struct ResizeAxis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;
  double start = 0;  ///< Of the region that tf_crop_and_resize reads, as fractions of the extent.
  double end = 1;

  /// Does it keep every element where it is?
  bool is_identity() const { return in == out && scale == 1 && start == 0 && end == 1; }
};

/// The inputs that say how to resize; absent or empty where they are not given.
struct ResizeInputs {
  TensorView roi, scales, sizes;
};

/// One output coordinate: (index, weight) of the inputs that it mixes. Extrapolated ones have no taps.
struct ResizeMix {
  std::vector<std::pair<int64_t, double>> taps;
};

/// The axes that roi, scales and sizes speak of, counted from the front.
Dims resized_axes(const Attributes& attributes, int64_t rank);

/// The common scale of keep_aspect_ratio_policy other than stretch, of axes with extents `in`.
double common_resize_scale(bool not_larger, const Dims& sizes, const std::vector<int64_t>& in);

/// All axes of a resize of dims x to dims y.
std::vector<ResizeAxis> resize_axes(const Attributes& attributes, std::span<const int64_t> x,
                                    std::span<const int64_t> y, const ResizeInputs& inputs);

/// What each output coordinate of an axis mixes; for mode nearest one element of weight 1.
std::vector<ResizeMix> resize_mixes(const Attributes& attributes, const ResizeAxis& axis);

}  // namespace autograph

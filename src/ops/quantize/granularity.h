// Which scale and zero point belong to which element: one for the tensor, one per position along an axis, or one per
// block of positions along an axis.
#pragma once

#include "autograph/op_def.h"

namespace autograph {

/// Throws ShapeError or ValueError unless the scale (input 1) is a scalar, [extent of axis], or with block_size has the
/// shape of x (input 0) but ceil(extent / block_size) on `axis`; the zero point (input 2) must have the same shape, or
/// one element where the scale has one.
void check_granularity(const InferContext& context);

/// Finds the scale of an element.
class Granularity {
 public:
  /// For shapes that check_granularity has accepted.
  Granularity(const Attributes& attributes, const TensorView& x, const TensorView& scale);
  /// Flat index into the scale for flat index `i` of x.
  int64_t operator()(int64_t i) const;

 private:
  bool blocked_ = false;
  int64_t block_ = 1;
  int64_t blocks_ = 1;  // extent of the scale on the axis
  int64_t extent_ = 1;
  int64_t inner_ = 1;
};

/// Rounds to nearest even, adds the zero point and clamps to [low, high]; NaN gives `low`.
int64_t quantize_value(double value, int64_t zero_point, int64_t low, int64_t high);

}  // namespace autograph

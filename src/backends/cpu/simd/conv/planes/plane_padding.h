// Row-major planes for convolutions that take a row of outputs at a time: copied into padded ones, so that no window
// ends outside; for strides of more than 1 the columns are sorted by their remainder, so that the inputs of
// neighbouring outputs are neighbours.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/window/window_geometry.h"

namespace autograph::simd {

/// A plane of the input and its windows; of one spatial dim, a plane of one row.
struct PlaneShape {
  WindowAxis rows, columns;
  int64_t padded_rows = 0;
  int64_t sorted = 0;  ///< Columns with one remainder, of a padded row.

  int64_t padded_width() const { return sorted * columns.stride; }
  int64_t taps() const { return rows.kernel * columns.kernel; }
  /// Padded rows that the windows of `outputs` rows of outputs reach.
  int64_t reached_rows(int64_t outputs) const {
    return (outputs - 1) * rows.stride + (rows.kernel - 1) * rows.dilation + 1;
  }
  /// Microseconds of a thread to put the columns of a plane where their remainders belong (pad_rows()); an estimate.
  double sorting_us() const {
    if (columns.stride == 1) return 0;
    return (columns.stride == 2 ? 0.3e-3 : 1e-3) * static_cast<double>(rows.in * columns.in);
  }
  /// Where each tap of a window lies, from where a padded plane begins.
  std::vector<int64_t> offsets() const;
};

/// Of an input with dims `x` and weights with dims `w`, of one or two spatial dims.
PlaneShape plane_shape(const Attributes& attributes, const Dims& x, const Dims& w);

/// Rows [first, first + count) of the padded plane of `x`. The columns of the padding in `padded` must be 0; what lies
/// behind the last window is left out.
void pad_rows(const PlaneShape& shape, const float* x, int64_t first, int64_t count, float* padded);

/// Weights that are not finite give NaN times the zeros of the padding.
bool all_finite(const float* weights, int64_t count);

/// Elements to have behind the end of a padded plane, as vectors are loaded whole: those of the widest vector.
inline constexpr int64_t kPlaneSlack = 64;

}  // namespace autograph::simd

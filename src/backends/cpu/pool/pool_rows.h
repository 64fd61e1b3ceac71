// A row of windows of a row-major pool: the rows of inputs that they meet are combined first, element by element, then
// the elements of that one row. Compiled for several instruction sets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ops/window/window_geometry.h"

namespace autograph {

/// How the windows of a row of outputs lie over a row of inputs.
class RowWindows {
 public:
  explicit RowWindows(const WindowAxis& axis);

  /// One tap of all windows: outputs [first, first + count) have it inside, that of `first` is input `input`.
  struct Taps {
    int64_t first = 0, count = 0, input = 0;
  };

  WindowAxis axis;
  std::vector<Taps> taps;
  int64_t full_begin = 0, full_end = 0;  ///< Outputs with all taps inside.
};

/// y[o] = the largest input of window o over all `lines`, one or more; NaN wins. `joined` has room for a line.
void max_pool_row(const RowWindows& windows, std::span<const float* const> lines, float* joined, float* y);

/// y[o] = the sum of the inputs of window o over all `lines`, divided by factor * counted[o], or 0 where that is 0.
void average_pool_row(const RowWindows& windows, std::span<const float* const> lines, float* joined, float factor,
                      const float* counted, float* y);

/// Element by element over all lines: into `joined`, or the only line itself.
const float* largest_of_lines(std::span<const float* const> lines, int64_t count, float* joined);
const float* sum_of_lines(std::span<const float* const> lines, int64_t count, float* joined);

/// Adds one line to the maxima y and their positions so far (-1: none); `position` is that of line[0].
void add_arg_max_line(const RowWindows& windows, const float* line, int32_t position, float* y, int32_t* positions);

}  // namespace autograph

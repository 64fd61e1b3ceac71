// A row of largest elements with their positions, line of inputs by line. Compiled for several instruction sets.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/window/window_geometry.h"

namespace autograph::simd {

/// One tap of all windows of a row: outputs [first, first + count) have it inside, that of `first` is input `input`.
struct RowTaps {
  int64_t first = 0, count = 0, input = 0;
};

/// Those that some window has inside.
std::vector<RowTaps> taps_of_row(const WindowAxis& axis);

/// Adds one line to the maxima y and their positions so far (-1: none); `position` is that of line[0]. NaN wins.
void add_arg_max_line(const std::vector<RowTaps>& taps, int64_t stride, const float* line, int32_t position, float* y,
                      int32_t* positions);

}  // namespace autograph::simd

// Rows of outputs of a row-major pool: the lines of inputs that the windows of a row meet are joined first, element by
// element, then the elements of that one line. Compiled for several instruction sets.
#pragma once

#include <cstdint>
#include <span>

#include "ops/window/window_geometry.h"

namespace autograph::simd {

/// A row of outputs.
struct PoolRow {
  std::span<const float* const> lines;  ///< That its windows meet, inside the input; none: all in the padding.
  const float* parts;                   ///< By window, what part of the sum is the mean; read in whole vectors.
  float* y;
};

/// Rows of windows that lie alike along their lines.
struct PoolRows {
  const WindowAxis& axis;
  bool is_mean;  ///< Else the largest element, where NaN wins.
  std::span<const PoolRow> rows;
  float* joined;  ///< One line for each row, as pad_joined_lines left them.
};

/// Elements of a joined line: with its padding, and with what vectors read beyond.
int64_t joined_line_size(const WindowAxis& axis);

/// Elements of the parts of a row.
int64_t pool_parts_size(const WindowAxis& axis);

/// Fills what lies in the padding of `count` joined lines.
void pad_joined_lines(const WindowAxis& axis, bool is_mean, int64_t count, float* joined);

void pool_rows(const PoolRows& task);

}  // namespace autograph::simd

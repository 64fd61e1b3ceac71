#include "backends/cpu/simd/conv/planes/plane_padding.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace autograph::simd {
namespace {

int64_t span_of(const WindowAxis& axis) { return (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1; }

// The first `count` columns of a row into a padded one.
void copy_row(const PlaneShape& shape, const float* from, int64_t count, float* to) {
  const WindowAxis& columns = shape.columns;
  if (columns.stride == 1) {
    if (count > 0) std::memcpy(to + columns.pad_begin, from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  for (int64_t remainder = 0; remainder < columns.stride; ++remainder) {
    // Columns remainder, remainder + stride, .. of the padded row, from the first one behind the padding on. Without a
    // division, which takes as long as fifty columns.
    float* sorted = to + remainder * shape.sorted;
    int64_t at = remainder - columns.pad_begin;
    for (; at < 0; at += columns.stride) ++sorted;
    for (; at < count; at += columns.stride) *sorted++ = from[at];
  }
}

}  // namespace

bool all_finite(const float* weights, int64_t count) {
  return std::all_of(weights, weights + count, [](float value) { return std::isfinite(value); });
}

std::vector<int64_t> PlaneShape::offsets() const {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < rows.kernel; ++i) {
    for (int64_t j = 0; j < columns.kernel; ++j) {
      const int64_t at = j * columns.dilation;
      result.push_back(i * rows.dilation * padded_width() + at % columns.stride * sorted + at / columns.stride);
    }
  }
  return result;
}

PlaneShape plane_shape(const Attributes& attributes, const Dims& x, const Dims& w) {
  auto axes =
      resolve_windows(window_spec(attributes, Dims(w.begin() + 2, w.end())), std::span<const int64_t>(x).subspan(2));
  if (axes.size() == 1) axes.insert(axes.begin(), WindowAxis{.in = 1, .out = 1});
  PlaneShape shape{.rows = axes[0], .columns = axes[1], .padded_rows = span_of(axes[0])};
  shape.sorted = (span_of(axes[1]) + axes[1].stride - 1) / axes[1].stride;
  return shape;
}

void pad_rows(const PlaneShape& shape, const float* x, int64_t first, int64_t count, float* padded) {
  const int64_t width = shape.padded_width();
  const int64_t inside = std::min(shape.columns.in, width - shape.columns.pad_begin);
  for (int64_t r = first; r < first + count; ++r, padded += width) {
    const int64_t row = r - shape.rows.pad_begin;
    if (row < 0 || row >= shape.rows.in) {
      std::fill_n(padded, width, 0.0F);
    } else {
      copy_row(shape, x + row * shape.columns.in, inside, padded);
    }
  }
}

}  // namespace autograph::simd

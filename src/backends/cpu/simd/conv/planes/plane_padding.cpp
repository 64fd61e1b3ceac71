#include "backends/cpu/simd/conv/planes/plane_padding.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/shape/piece_copies.h"

namespace autograph::simd {
namespace {

int64_t span_of(const WindowAxis& axis) { return (axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1; }

// to[i] = from[2 * i].
AG_MULTIVERSION void take_every_second(const float* from, int64_t count, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
}

// The first `count` columns of a row into a padded one, sorted by the remainder of their place in it.
void sort_row(const PlaneShape& shape, const float* from, int64_t count, float* to) {
  const WindowAxis& columns = shape.columns;
  for (int64_t remainder = 0; remainder < columns.stride; ++remainder) {
    // Columns remainder, remainder + stride, .. of the padded row, from the first one behind the padding on. Without a
    // division, which takes as long as fifty columns.
    float* sorted = to + remainder * shape.sorted;
    int64_t at = remainder - columns.pad_begin;
    for (; at < 0; at += columns.stride) ++sorted;
    if (columns.stride == 2) {
      if (at < count) take_every_second(from + at, (count - at + 1) / 2, sorted);
    } else {
      for (; at < count; at += columns.stride) *sorted++ = from[at];
    }
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
  // Of the input, those behind its first row and before its end.
  const int64_t begin = std::clamp(shape.rows.pad_begin - first, int64_t{0}, count);
  const int64_t end = std::clamp(shape.rows.in + shape.rows.pad_begin - first, begin, count);
  std::fill_n(padded, begin * width, 0.0F);
  std::fill_n(padded + end * width, (count - end) * width, 0.0F);
  if (inside <= 0) return;
  const float* from = x + (first + begin - shape.rows.pad_begin) * shape.columns.in;
  padded += begin * width;
  if (shape.columns.stride == 1) {
    constexpr auto kBytes = static_cast<int64_t>(sizeof(float));
    return copy_pieces({reinterpret_cast<char*>(padded + shape.columns.pad_begin), width * kBytes,
                        reinterpret_cast<const char*>(from), shape.columns.in * kBytes, inside * kBytes, end - begin});
  }
  for (int64_t r = begin; r < end; ++r, padded += width, from += shape.columns.in) {
    sort_row(shape, from, inside, padded);
  }
}

}  // namespace autograph::simd

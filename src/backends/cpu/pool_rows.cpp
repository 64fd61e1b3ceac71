#include "backends/cpu/pool_rows.h"

#include <algorithm>
#include <limits>

#include "backends/cpu/multiversion.h"

// Everything below a multiversioned function is inlined into it, so that it is compiled for its instruction set.
#define AG_INLINE inline __attribute__((always_inline))

namespace autograph {
namespace {

// NaN wins, and stays.
AG_INLINE float larger(float best, float x) { return x <= best || best != best ? best : x; }

struct Largest {
  static constexpr float kNone = -std::numeric_limits<float>::infinity();
  static AG_INLINE float combine(float a, float b) { return larger(a, b); }
};

struct Sum {
  static constexpr float kNone = 0;
  static AG_INLINE float combine(float a, float b) { return a + b; }
};

// The k-th input of a row belongs to the k-th output, `stride` apart. Strides of 1 and 2 have loops of their own, which
// the compiler turns into vector instructions.
template <class Body>
AG_INLINE void for_strided(int64_t count, int64_t stride, const Body& body) {
  if (stride == 1) {
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) body(k, k);
  } else if (stride == 2) {
#pragma omp simd
    for (int64_t k = 0; k < count; ++k) body(k, 2 * k);
  } else {
    for (int64_t k = 0; k < count; ++k) body(k, stride * k);
  }
}

// All lines as one; `joined` when there are several.
template <class Op>
AG_INLINE const float* join(std::span<const float* const> lines, int64_t count, float* joined) {
  const float* so_far = lines[0];
  for (size_t i = 1; i < lines.size();) {
    const float *a = so_far, *b = lines[i];
    if (i + 2 < lines.size()) {
      const float *c = lines[i + 1], *d = lines[i + 2];
#pragma omp simd
      for (int64_t k = 0; k < count; ++k) {
        joined[k] = Op::combine(Op::combine(Op::combine(a[k], b[k]), c[k]), d[k]);
      }
      i += 3;
    } else if (i + 1 < lines.size()) {
      const float* c = lines[i + 1];
#pragma omp simd
      for (int64_t k = 0; k < count; ++k) joined[k] = Op::combine(Op::combine(a[k], b[k]), c[k]);
      i += 2;
    } else {
#pragma omp simd
      for (int64_t k = 0; k < count; ++k) joined[k] = Op::combine(a[k], b[k]);
      ++i;
    }
    so_far = joined;
  }
  return so_far;
}

// Windows of two or three neighbours in one pass; those at the edges one by one.
template <class Op, int Kernel>
AG_INLINE void combine_neighbours(const RowWindows& windows, const float* line, float* y) {
  const WindowAxis& axis = windows.axis;
  const auto edge = [&](int64_t o) {
    float result = Op::kNone;
    for (int64_t t = 0; t < Kernel; ++t) {
      const int64_t i = o * axis.stride - axis.pad_begin + t;
      if (i >= 0 && i < axis.in) result = Op::combine(result, line[i]);
    }
    y[o] = result;
  };
  for (int64_t o = 0; o < windows.full_begin; ++o) edge(o);
  const float* x = line + windows.full_begin * axis.stride - axis.pad_begin;
  float* out = y + windows.full_begin;
  for_strided(windows.full_end - windows.full_begin, axis.stride, [=](int64_t k, int64_t i) {
    float result = Op::combine(x[i], x[i + 1]);
    if constexpr (Kernel == 3) result = Op::combine(result, x[i + 2]);
    out[k] = result;
  });
  for (int64_t o = windows.full_end; o < axis.out; ++o) edge(o);
}

template <class Op>
AG_INLINE void combine_row(const RowWindows& windows, const float* line, float* y) {
  const WindowAxis& axis = windows.axis;
  if (axis.dilation == 1 && axis.kernel == 2) return combine_neighbours<Op, 2>(windows, line, y);
  if (axis.dilation == 1 && axis.kernel == 3) return combine_neighbours<Op, 3>(windows, line, y);
  std::fill_n(y, axis.out, Op::kNone);
  for (const RowWindows::Taps& taps : windows.taps) {
    float* out = y + taps.first;
    const float* x = line + taps.input;
    for_strided(taps.count, axis.stride, [=](int64_t k, int64_t i) { out[k] = Op::combine(out[k], x[i]); });
  }
}

}  // namespace

RowWindows::RowWindows(const WindowAxis& a) : axis(a) {
  full_end = axis.out;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t shift = tap * axis.dilation - axis.pad_begin;  // input of output 0
    const int64_t first = std::min(axis.out, shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride);
    const int64_t last = std::min(axis.out, shift >= axis.in ? 0 : (axis.in - 1 - shift) / axis.stride + 1);
    if (last > first) taps.push_back({first, last - first, shift + first * axis.stride});
    full_begin = std::max(full_begin, first);
    full_end = std::min(full_end, last);
  }
  full_end = std::max(full_end, full_begin);
}

AG_MULTIVERSION const float* largest_of_lines(std::span<const float* const> lines, int64_t count, float* joined) {
  return join<Largest>(lines, count, joined);
}

AG_MULTIVERSION const float* sum_of_lines(std::span<const float* const> lines, int64_t count, float* joined) {
  return join<Sum>(lines, count, joined);
}

AG_MULTIVERSION void max_pool_row(const RowWindows& windows, std::span<const float* const> lines, float* joined,
                                  float* y) {
  combine_row<Largest>(windows, join<Largest>(lines, windows.axis.in, joined), y);
}

AG_MULTIVERSION void average_pool_row(const RowWindows& windows, std::span<const float* const> lines, float* joined,
                                      float factor, const float* counted, float* y) {
  combine_row<Sum>(windows, join<Sum>(lines, windows.axis.in, joined), y);
  // Where nothing counts the sum is 0.
#pragma omp simd
  for (int64_t o = 0; o < windows.axis.out; ++o) {
    const float taps = factor * counted[o];
    y[o] /= taps == 0 ? 1 : taps;
  }
}

AG_MULTIVERSION void add_arg_max_line(const RowWindows& windows, const float* line, int32_t position, float* y,
                                      int32_t* positions) {
  for (const RowWindows::Taps& taps : windows.taps) {
    float* best = y + taps.first;
    int32_t* best_position = positions + taps.first;
    const float* x = line + taps.input;
    const auto from = position + static_cast<int32_t>(taps.input);
    for_strided(taps.count, windows.axis.stride, [=](int64_t k, int64_t i) {
      const bool stays = best_position[k] >= 0 && (x[i] <= best[k] || best[k] != best[k]);
      best[k] = stays ? best[k] : x[i];
      best_position[k] = stays ? best_position[k] : from + static_cast<int32_t>(i);
    });
  }
}

}  // namespace autograph

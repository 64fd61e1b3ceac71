#include "backends/cpu/pool/pool_rows.h"

#include <algorithm>
#include <array>
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
  static AG_INLINE float finish(float largest, float) { return largest; }
};

struct Sum {
  static constexpr float kNone = 0;
  static AG_INLINE float combine(float a, float b) { return a + b; }
  static AG_INLINE float finish(float sum, float scale) { return sum * scale; }
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

// Outputs that are computed at once.
constexpr int64_t kBlock = 16;

// Where the first window of some begins in each line.
template <int Lines>
struct Starts {
  std::array<const float*, Lines> lines;

  // Of all lines, `at` elements behind.
  template <class Op>
  AG_INLINE float combine(int64_t at) const {
    float result = lines[0][at];
    for (size_t i = 1; i < Lines; ++i) result = Op::combine(result, lines[i][at]);
    return result;
  }
};

template <class Op, int Kernel, int Lines>
AG_INLINE float combine_window(const Starts<Lines>& starts, int64_t at) {
  float result = Op::combine(starts.template combine<Op>(at), starts.template combine<Op>(at + 1));
  if constexpr (Kernel == 3) result = Op::combine(result, starts.template combine<Op>(at + 2));
  return result;
}

// kBlock windows. Lines that are read with gaps are combined before: taking them apart costs more than combining them.
template <class Op, int Kernel, int Lines, int Stride>
AG_INLINE void combine_block(const Starts<Lines>& starts, int64_t at, float scale, float* out) {
  if constexpr (Stride == 2 && Kernel == 2 && Lines > 1) {
    float columns[2 * kBlock];
#pragma omp simd
    for (int64_t k = 0; k < 2 * kBlock; ++k) columns[k] = starts.template combine<Op>(at + k);
#pragma omp simd
    for (int64_t k = 0; k < kBlock; ++k) out[k] = Op::finish(Op::combine(columns[2 * k], columns[2 * k + 1]), scale);
  } else {
#pragma omp simd
    for (int64_t k = 0; k < kBlock; ++k) {
      out[k] = Op::finish(combine_window<Op, Kernel>(starts, at + k * Stride), scale);
    }
  }
}

// Of `count` windows the last block may be computed again: a rest of single ones would take longer than all others.
template <class Op, int Kernel, int Lines, int Stride>
AG_INLINE void combine_blocks(const Starts<Lines>& starts, int64_t count, float scale, float* out) {
  int64_t k = 0;
  for (; k + kBlock <= count; k += kBlock) {
    combine_block<Op, Kernel, Lines, Stride>(starts, k * Stride, scale, out + k);
  }
  if (k < count)
    combine_block<Op, Kernel, Lines, Stride>(starts, (count - kBlock) * Stride, scale, out + count - kBlock);
}

// All `lines` as one row of windows of two or three neighbours, in one pass; windows at the edges one by one, and not
// finished.
template <class Op, int Kernel, int Lines>
AG_INLINE void combine_neighbours(const RowWindows& windows, const std::array<const float*, Lines>& lines, float scale,
                                  float* y) {
  const WindowAxis& axis = windows.axis;
  const auto edge = [&](int64_t o) {
    const int64_t begin = o * axis.stride - axis.pad_begin;
    float result = Op::kNone;
    for (int64_t i = std::max<int64_t>(begin, 0); i < std::min(begin + Kernel, axis.in); ++i) {
      for (const float* line : lines) result = Op::combine(result, line[i]);
    }
    y[o] = result;
  };
  for (int64_t o = 0; o < windows.full_begin; ++o) edge(o);
  for (int64_t o = windows.full_end; o < axis.out; ++o) edge(o);
  Starts<Lines> starts{lines};
  for (const float*& line : starts.lines) line += windows.full_begin * axis.stride - axis.pad_begin;
  const int64_t count = windows.full_end - windows.full_begin;
  float* const out = y + windows.full_begin;
  if (count >= kBlock && axis.stride == 1) return combine_blocks<Op, Kernel, Lines, 1>(starts, count, scale, out);
  if (count >= kBlock && axis.stride == 2) return combine_blocks<Op, Kernel, Lines, 2>(starts, count, scale, out);
  for (int64_t k = 0; k < count; ++k) {
    out[k] = Op::finish(combine_window<Op, Kernel>(starts, k * axis.stride), scale);
  }
}

template <class Op, int Kernel>
AG_INLINE void combine_some_neighbours(const RowWindows& windows, std::span<const float* const> lines, float* joined,
                                       float scale, float* y) {
  // What one window alone reads is combined on the way; what several read, once for all of them.
  if (Kernel == 2 && windows.axis.stride >= 2) {
    if (lines.size() == 2) return combine_neighbours<Op, 2, 2>(windows, {lines[0], lines[1]}, scale, y);
    if (lines.size() == 3) return combine_neighbours<Op, 2, 3>(windows, {lines[0], lines[1], lines[2]}, scale, y);
    if (lines.size() == 4) {
      return combine_neighbours<Op, 2, 4>(windows, {lines[0], lines[1], lines[2], lines[3]}, scale, y);
    }
  }
  const float* line = join<Op>(lines, windows.axis.in, joined);
  combine_neighbours<Op, Kernel, 1>(windows, {line}, scale, y);
}

// Full windows are finished, with `scale`.
template <class Op>
AG_INLINE void combine_rows(const RowWindows& windows, std::span<const float* const> lines, float* joined, float scale,
                            float* y) {
  const WindowAxis& axis = windows.axis;
  if (axis.dilation == 1 && axis.kernel == 2) return combine_some_neighbours<Op, 2>(windows, lines, joined, scale, y);
  if (axis.dilation == 1 && axis.kernel == 3) return combine_some_neighbours<Op, 3>(windows, lines, joined, scale, y);
  const float* line = join<Op>(lines, axis.in, joined);
  std::fill_n(y, axis.out, Op::kNone);
  for (const RowWindows::Taps& taps : windows.taps) {
    float* out = y + taps.first;
    const float* x = line + taps.input;
    for_strided(taps.count, axis.stride, [=](int64_t k, int64_t i) { out[k] = Op::combine(out[k], x[i]); });
  }
#pragma omp simd
  for (int64_t o = windows.full_begin; o < windows.full_end; ++o) y[o] = Op::finish(y[o], scale);
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
  combine_rows<Largest>(windows, lines, joined, 1, y);
}

AG_MULTIVERSION void average_pool_row(const RowWindows& windows, std::span<const float* const> lines, float* joined,
                                      float factor, const float* counted, float* y) {
  // Where nothing counts the sum is 0.
  const auto taps_of = [=](int64_t o) { return factor * counted[o] == 0 ? 1 : factor * counted[o]; };
  const float scale = windows.full_begin < windows.full_end ? 1 / taps_of(windows.full_begin) : 1;
  combine_rows<Sum>(windows, lines, joined, scale, y);
  for (int64_t o = 0; o < windows.full_begin; ++o) y[o] /= taps_of(o);
  for (int64_t o = windows.full_end; o < windows.axis.out; ++o) y[o] /= taps_of(o);
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

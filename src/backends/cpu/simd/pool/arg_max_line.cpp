#include "backends/cpu/simd/pool/arg_max_line.h"

#include <algorithm>

#include "backends/cpu/multiversion.h"

namespace autograph::simd {
namespace {

// The k-th input of a row belongs to the k-th output, `stride` apart. Strides of 1 and 2 have loops of their own, which
// the compiler turns into vector instructions. Inlined, so that it is compiled for the caller's instruction set.
template <class Body>
inline __attribute__((always_inline)) void for_strided(int64_t count, int64_t stride, const Body& body) {
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

}  // namespace

std::vector<RowTaps> taps_of_row(const WindowAxis& axis) {
  std::vector<RowTaps> taps;
  for (int64_t tap = 0; tap < axis.kernel; ++tap) {
    const int64_t shift = tap * axis.dilation - axis.pad_begin;  // input of output 0
    const int64_t first = std::min(axis.out, shift >= 0 ? 0 : (-shift + axis.stride - 1) / axis.stride);
    const int64_t last = std::min(axis.out, shift >= axis.in ? 0 : (axis.in - 1 - shift) / axis.stride + 1);
    if (last > first) taps.push_back({first, last - first, shift + first * axis.stride});
  }
  return taps;
}

AG_MULTIVERSION void add_arg_max_line(const std::vector<RowTaps>& taps, int64_t stride, const float* line,
                                      int32_t position, float* y, int32_t* positions) {
  for (const RowTaps& tap : taps) {
    float* best = y + tap.first;
    int32_t* best_position = positions + tap.first;
    const float* x = line + tap.input;
    const auto from = position + static_cast<int32_t>(tap.input);
    for_strided(tap.count, stride, [=](int64_t k, int64_t i) {
      const bool stays = best_position[k] >= 0 && (x[i] <= best[k] || best[k] != best[k]);
      best[k] = stays ? best[k] : x[i];
      best_position[k] = stays ? best_position[k] : from + static_cast<int32_t>(i);
    });
  }
}

}  // namespace autograph::simd

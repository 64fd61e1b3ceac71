#include "backends/cpu/normalization/pixel_sums.h"

#include <algorithm>

#include "backends/cpu/multiversion.h"

namespace autograph {
namespace {

// Pixels that are added up before their sum is added to the others'.
constexpr int64_t kPixelsPerSum = 32;

inline __attribute__((always_inline)) void add(const float* from, int64_t count, float* to) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

AG_MULTIVERSION void add_pixels(const float* x, int64_t pixels, int64_t channels, float* sums, float* totals) {
  for (int64_t begin = 0; begin < pixels; begin += kPixelsPerSum) {
    const int64_t end = std::min(pixels, begin + kPixelsPerSum);
    std::fill_n(sums, channels, 0.0F);
    int64_t p = begin;
    for (; p + 4 <= end; p += 4) {
      const float* from = x + p * channels;
#pragma omp simd
      for (int64_t c = 0; c < channels; ++c) {
        sums[c] += (from[c] + from[c + channels]) + (from[c + 2 * channels] + from[c + 3 * channels]);
      }
    }
    for (; p < end; ++p) add(x + p * channels, channels, sums);
    add(sums, channels, totals);
  }
}

AG_MULTIVERSION void add_elements(const float* from, int64_t count, float* to) { add(from, count, to); }

}  // namespace autograph

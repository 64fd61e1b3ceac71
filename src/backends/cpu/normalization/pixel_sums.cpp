#include "backends/cpu/normalization/pixel_sums.h"

#include <algorithm>
#include <cmath>

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

void means_of_pixels(const float* sums, const float* x, int64_t channels, int64_t pixels, int64_t block, float* means) {
  for (int64_t i = 0; i < channels; ++i) {
    if (std::isfinite(sums[i])) {
      means[i] = sums[i] / static_cast<float>(pixels);
      continue;
    }
    const float* channel = x + i / block * block * pixels + i % block;
    double exact = 0;
    for (int64_t p = 0; p < pixels; ++p) exact += static_cast<double>(channel[p * block]);
    means[i] = static_cast<float>(exact / static_cast<double>(pixels));
  }
}

AG_MULTIVERSION void add_elements(const float* from, int64_t count, float* to) { add(from, count, to); }

}  // namespace autograph

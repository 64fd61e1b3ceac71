#include "backends/cpu/normalization/channel_sums.h"

#include <algorithm>

#include "backends/cpu/multiversion.h"

// Inlined into multiversioned functions, so that it is compiled for their instruction sets.
#define AG_INLINE inline __attribute__((always_inline))

namespace autograph {
namespace {

// Elements added up in f32 before they go to the totals: few enough to keep rounding errors small.
constexpr int64_t kRun = 128;

// One channel whose elements lie in a row.
template <bool WithG>
AG_INLINE void add_row(const float* x, const float* g, int64_t count, float from, const ChannelSums& sums) {
  double total = 0, squares = 0, flow = 0, product = 0;
  for (int64_t begin = 0; begin < count; begin += kRun * 16) {
    const int64_t end = std::min(count, begin + kRun * 16);
    float run = 0, run_squares = 0, run_flow = 0, run_product = 0;
#pragma omp simd reduction(+ : run, run_squares, run_flow, run_product)
    for (int64_t i = begin; i < end; ++i) {
      const float difference = x[i] - from;
      run += difference;
      run_squares += difference * difference;
      if constexpr (WithG) {
        run_flow += g[i];
        run_product += g[i] * difference;
      }
    }
    total += static_cast<double>(run);
    squares += static_cast<double>(run_squares);
    flow += static_cast<double>(run_flow);
    product += static_cast<double>(run_product);
  }
  *sums.x += total;
  *sums.squares += squares;
  if constexpr (WithG) {
    *sums.g += flow;
    *sums.product += product;
  }
}

// Width channels beside each other, of pixels that are `stride` apart.
template <int Width, bool WithG>
AG_INLINE void add_tile(const float* x, const float* g, int64_t pixels, int64_t stride, const float* from,
                        const ChannelSums& sums) {
  float total[Width] = {}, squares[Width] = {}, flow[Width] = {}, product[Width] = {};
  for (int64_t p = 0; p < pixels; ++p) {
#pragma omp simd
    for (int c = 0; c < Width; ++c) {
      const float difference = x[p * stride + c] - from[c];
      total[c] += difference;
      squares[c] += difference * difference;
      if constexpr (WithG) {
        flow[c] += g[p * stride + c];
        product[c] += g[p * stride + c] * difference;
      }
    }
  }
  for (int c = 0; c < Width; ++c) {
    sums.x[c] += static_cast<double>(total[c]);
    sums.squares[c] += static_cast<double>(squares[c]);
    if constexpr (WithG) {
      sums.g[c] += static_cast<double>(flow[c]);
      sums.product[c] += static_cast<double>(product[c]);
    }
  }
}

AG_INLINE ChannelSums behind(const ChannelSums& sums, int64_t channel) {
  return {sums.x + channel, sums.squares + channel, sums.g ? sums.g + channel : nullptr,
          sums.product ? sums.product + channel : nullptr};
}

template <bool WithG>
AG_INLINE void add_piece(const float* x, const float* g, int64_t pixels, int64_t width, const float* from,
                         const ChannelSums& sums) {
  if (width == 1) return add_row<WithG>(x, g, pixels, *from, sums);
  for (int64_t begin = 0; begin < pixels; begin += kRun) {
    const int64_t count = std::min(kRun, pixels - begin), at = begin * width;
    int64_t c = 0;
    for (; c + 16 <= width; c += 16) {
      add_tile<16, WithG>(x + at + c, g + at + c, count, width, from + c, behind(sums, c));
    }
    for (; c + 8 <= width; c += 8) {
      add_tile<8, WithG>(x + at + c, g + at + c, count, width, from + c, behind(sums, c));
    }
    for (; c < width; ++c) add_tile<1, WithG>(x + at + c, g + at + c, count, width, from + c, behind(sums, c));
  }
}

AG_MULTIVERSION void add_x(const float* x, int64_t pixels, int64_t width, const float* from, const ChannelSums& sums) {
  add_piece<false>(x, x, pixels, width, from, sums);
}

AG_MULTIVERSION void add_x_and_g(const float* x, const float* g, int64_t pixels, int64_t width, const float* from,
                                 const ChannelSums& sums) {
  add_piece<true>(x, g, pixels, width, from, sums);
}

template <bool WithG>
AG_INLINE float combined(float x, float g, const ChannelFactors& by, int64_t c) {
  const float y = (x - by.a[c]) * by.b[c] + by.c[c];
  return WithG ? y + g * by.d[c] : y;
}

// A width that is known at compile time keeps the factors in registers.
template <int Width, bool WithG>
AG_INLINE void write_pixels(const float* x, const float* g, int64_t pixels, const ChannelFactors& by, float* y) {
  for (int64_t p = 0; p < pixels; ++p) {
#pragma omp simd
    for (int c = 0; c < Width; ++c) y[p * Width + c] = combined<WithG>(x[p * Width + c], g[p * Width + c], by, c);
  }
}

template <bool WithG>
AG_INLINE void write_piece(const float* x, const float* g, int64_t pixels, int64_t width, const ChannelFactors& by,
                           float* y) {
  if (width == 16) return write_pixels<16, WithG>(x, g, pixels, by, y);
  if (width == 8) return write_pixels<8, WithG>(x, g, pixels, by, y);
  if (width == 1) {
    const float a = *by.a, b = *by.b, c = *by.c, d = WithG ? *by.d : 0;
#pragma omp simd
    for (int64_t i = 0; i < pixels; ++i) {
      const float value = (x[i] - a) * b + c;
      y[i] = WithG ? value + g[i] * d : value;
    }
    return;
  }
  for (int64_t p = 0; p < pixels; ++p) {
    const int64_t at = p * width;
#pragma omp simd
    for (int64_t c = 0; c < width; ++c) y[at + c] = combined<WithG>(x[at + c], g[at + c], by, c);
  }
}

AG_MULTIVERSION void write_x(const float* x, int64_t pixels, int64_t width, const ChannelFactors& by, float* y) {
  write_piece<false>(x, x, pixels, width, by, y);
}

AG_MULTIVERSION void write_x_and_g(const float* x, const float* g, int64_t pixels, int64_t width,
                                   const ChannelFactors& by, float* y) {
  write_piece<true>(x, g, pixels, width, by, y);
}

ChannelFactors behind(const ChannelFactors& by, int64_t channel) {
  return {by.a + channel, by.b + channel, by.c + channel, by.d ? by.d + channel : nullptr};
}

}  // namespace

ChannelRows::ChannelRows(const Dims& dims, Layout layout) {
  for (size_t a = 2; a < dims.size(); ++a) pixels *= dims[a];
  width = layout == Layout::channels_last ? dims[1] : channel_block(layout);
  if (pixels == 1 && layout == Layout::row_major) width = dims[1];
  groups = dims[1] / width;
  rows = dims[0] * groups;
  if (groups > 1 || pixels > 1) return;
  std::swap(rows, pixels);  // [N, C]: one row of N pixels
}

void sample_channels(const ChannelRows& rows, const float* x, float* from) {
  constexpr int64_t kSamples = 16;
  const int64_t samples = std::min(kSamples, rows.count());
  for (int64_t channel = 0; channel < rows.channels(); ++channel) {
    double sum = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t at = rows.count() * i / samples;  // among the pixels of this channel
      const int64_t row = at / rows.pixels * rows.groups + channel / rows.width;
      sum += static_cast<double>(x[(row * rows.pixels + at % rows.pixels) * rows.width + channel % rows.width]);
    }
    from[channel] = static_cast<float>(sum / static_cast<double>(samples));
  }
}

void add_channel_sums(const ChannelRows& rows, const float* x, const float* g, int64_t begin, int64_t end,
                      const float* from, const ChannelSums& sums) {
  rows.for_pieces(begin, end, [&](int64_t at, int64_t channel, int64_t pixels) {
    if (g) {
      add_x_and_g(x + at, g + at, pixels, rows.width, from + channel, behind(sums, channel));
    } else {
      add_x(x + at, pixels, rows.width, from + channel, behind(sums, channel));
    }
  });
}

void normalize_channels(const ChannelRows& rows, const float* x, const ChannelFactors& by, int64_t begin, int64_t end,
                        float* y) {
  rows.for_pieces(begin, end, [&](int64_t at, int64_t channel, int64_t pixels) {
    write_x(x + at, pixels, rows.width, behind(by, channel), y + at);
  });
}

void combine_channels(const ChannelRows& rows, const float* x, const float* g, const ChannelFactors& by, int64_t begin,
                      int64_t end, float* y) {
  rows.for_pieces(begin, end, [&](int64_t at, int64_t channel, int64_t pixels) {
    write_x_and_g(x + at, g + at, pixels, rows.width, behind(by, channel), y + at);
  });
}

}  // namespace autograph

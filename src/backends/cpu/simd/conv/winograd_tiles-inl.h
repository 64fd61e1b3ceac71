// What Winograd's convolutions of squares and of lines have in common, on vectors.
#if defined(AG_SIMD_WINOGRAD_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_WINOGRAD_TILES_INL_H
#undef AG_SIMD_WINOGRAD_TILES_INL_H
#else
#define AG_SIMD_WINOGRAD_TILES_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/conv/winograd_conv_loops.h"
#include "backends/cpu/simd/linear/micro_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE int64_t winograd_lanes() { return static_cast<int64_t>(hn::Lanes(D())); }

// A vector of channels of which `count` exist; the others are 0.
HWY_INLINE V load_channels(const float* from, int64_t count) {
  if (count >= winograd_lanes()) return hn::LoadU(D(), from);
  return load_some(D(), from, static_cast<size_t>(count), hn::Zero(D()));
}
HWY_INLINE void store_channels(V v, float* to, int64_t count) {
  if (count >= winograd_lanes()) return hn::StoreU(v, D(), to);
  store_some(D(), v, to, static_cast<size_t>(count));
}

// The polynomial with the coefficients `weights` at +-point, times `factor`.
template <int kTaps>
HWY_INLINE void evaluate_pair(const V (&weights)[kTaps], float point, float factor, V& at_plus, V& at_minus) {
  const D d;
  const V square = hn::Set(d, point * point);
  V even = weights[kTaps - 1];
  for (int i = kTaps - 3; i >= 0; i -= 2) even = hn::MulAdd(even, square, weights[i]);
  V odd = weights[kTaps - 2];
  for (int i = kTaps - 4; i >= 0; i -= 2) odd = hn::MulAdd(odd, square, weights[i]);
  even = hn::Mul(even, hn::Set(d, factor));
  at_plus = hn::MulAdd(odd, hn::Set(d, factor * point), even);
  at_minus = hn::NegMulAdd(odd, hn::Set(d, factor * point), even);
}

// Where a tile lies.
struct WinogradPlace {
  int64_t instance;
  int64_t row;  // of its first output
  int64_t column;
};

// The first output of the tiles of one axis, phase after phase.
inline int64_t first_output(const WinogradShape& shape, size_t axis, int64_t tile) {
  const int64_t tiles = shape.tiles_of_phase(axis);
  return tile / tiles + tile % tiles * shape.tile()[axis] * shape.dilation[axis];
}

// Row after row; column after column where the next tile must be the next one of a line of rows.
inline WinogradPlace place_of(const WinogradShape& shape, int64_t tile) {
  const int64_t wide = shape.tiles_wide();
  const int64_t high = shape.tiles_high();
  const bool is_by_column = shape.line_axis() == 0 && shape.num_sections() > 1;
  const int64_t row = is_by_column ? tile % high : tile / wide % high;
  const int64_t column = is_by_column ? tile / high % wide : tile % wide;
  return {tile / (high * wide), first_output(shape, 0, row), first_output(shape, 1, column)};
}

// How many of the outputs of a tile that begins at `first` lie inside of the image.
template <int kOut>
HWY_INLINE int outputs_inside(const WinogradShape& shape, size_t axis, int64_t first) {
  const int64_t left = (shape.out[axis] - first + shape.dilation[axis] - 1) / shape.dilation[axis];
  return static_cast<int>(std::clamp<int64_t>(left, 0, kOut));
}

// Of a channel of the first pixel, with `block` channels of a pixel together and planes of `pixels`.
HWY_INLINE int64_t channel_offset(int64_t channel, int64_t block, int64_t pixels) {
  return channel / block * block * pixels + channel % block;
}

// Some rows of as many pixels of a vector of channels, of which some may lie outside of the image.
struct OutputTile {
  float* y;
  ConvResiduals residuals;
  int64_t row;
  int64_t pixel;
  int rows;
  int columns;
  int64_t channels = 0;  // of the vector, those that exist
};

template <int kOut>
HWY_INLINE void store_tile(const OutputTile& tile, std::span<const ConvStep> steps, V* out) {
  const D d;
  for (const ConvStep& step : steps) {
    const float* const from = tile.residuals.of(step);
    apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
      for (int i = 0; i < tile.rows; ++i) {
        for (int j = 0; j < tile.columns; ++j) {
          const auto residual = [&]() HWY_ATTR {
            return load_channels(from + i * tile.row + j * tile.pixel, tile.channels);
          };
          out[i * kOut + j] = f(out[i * kOut + j], residual);
        }
      }
    });
  }
  for (int i = 0; i < tile.rows; ++i) {
    for (int j = 0; j < tile.columns; ++j) {
      store_channels(out[i * kOut + j], tile.y + i * tile.row + j * tile.pixel, tile.channels);
    }
  }
}

// The products of `rows` transformed tiles from row `first` on with one unit of output channels, at every point.
inline void multiply_at_points(const WinogradTask& task, int64_t first, int64_t rows, int64_t unit, float* products) {
  const WinogradShape& shape = task.shape;
  const int64_t depth = shape.depth();
  const int64_t width = shape.unit_columns(unit);
  const int64_t points = shape.points();
  const float* weights = task.weights + unit * points * depth * kWinogradUnit;
  const float* in = task.transformed + first * shape.in_channels;
  for (int64_t p = 0; p < points; ++p) {
    multiply_packed<true>({.a = in + p * shape.transformed_plane(task.tiles),
                           .a_stride = shape.in_channels,  // less than the depth where there are sections
                           .panel = weights + p * depth * width,
                           .depth = depth,
                           .c = products + p * winograd_plane(rows, kWinogradUnit),
                           .c_stride = kWinogradUnit,
                           .accumulate = false,
                           .next_panel = weights + (p + 1) * depth * width},
                          rows, width);
  }
}

// The units from `begin` to `end` of weights; `transform` makes what stands for a vector of output channels and one
// input channel in a section at all points.
template <int kPoints, class Transform>
HWY_INLINE void transform_units(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                                float* transformed, const Transform& transform) {
  const D d;
  const hn::RebindToSigned<D> di;
  const int64_t depth = shape.depth(), taps = shape.taps[0] * shape.taps[1];
  const int64_t size = shape.in_channels * taps;  // of an output channel
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit * kWinogradUnit;
    const int64_t width = shape.unit_columns(unit);
    float* to = transformed + unit * kPoints * depth * kWinogradUnit;
    for (int64_t column = 0; column < width; column += winograd_lanes()) {
      // Columns without a channel repeat the last one: what they give is not stored.
      const int64_t channel = std::min(first + column, shape.out_channels - 1);
      const auto last = hn::Set(di, static_cast<int32_t>(shape.out_channels - 1 - channel));
      const auto next_output = hn::Mul(hn::Min(hn::Iota(di, 0), last), hn::Set(di, static_cast<int32_t>(size)));
      const int64_t panel = column / panel_width() * panel_width();
      const int64_t panel_columns = std::min(panel_width(), width - panel);
      for (int64_t k = 0; k < depth; ++k) {
        V out[kPoints];
        transform(weights + channel * size + k % shape.in_channels * taps, next_output, k / shape.in_channels, out);
        float* at = to + panel * depth + k * panel_columns + (column - panel);
        for (int64_t p = 0; p < kPoints; ++p) hn::StoreU(out[p], d, at + p * depth * width);
      }
    }
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

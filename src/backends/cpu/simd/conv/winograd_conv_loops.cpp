#include "backends/cpu/simd/conv/winograd_conv_loops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/winograd_conv_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/winograd_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

constexpr int kLargeIn = static_cast<int>(kWinogradIn);
constexpr int kSmallIn = static_cast<int>(kWinogradSmallIn);

// The points other than 0 and infinity are +-a and +-b with a b = 1.
constexpr float kA = 2.0F / 3;
constexpr float kB = 1.5F;
constexpr float kA2 = kA * kA;
constexpr float kB2 = kB * kB;

// out[p * step] = values at point p of what six inputs in a row stand for, or four.
HWY_INLINE void transform_inputs_1d(const V (&in)[kLargeIn], V* out, ptrdiff_t step) {
  const D d;
  const V both = hn::Set(d, kA2 + kB2);
  const V even_a = hn::NegMulAdd(hn::Set(d, kB2), in[2], in[4]);
  const V even_b = hn::NegMulAdd(hn::Set(d, kA2), in[2], in[4]);
  const V odd_a = hn::NegMulAdd(hn::Set(d, kB2), in[1], in[3]);
  const V odd_b = hn::NegMulAdd(hn::Set(d, kA2), in[1], in[3]);
  out[0] = hn::Add(hn::NegMulAdd(both, in[2], in[0]), in[4]);
  out[step] = hn::MulAdd(hn::Set(d, kA), odd_a, even_a);
  out[2 * step] = hn::NegMulAdd(hn::Set(d, kA), odd_a, even_a);
  out[3 * step] = hn::MulAdd(hn::Set(d, kB), odd_b, even_b);
  out[4 * step] = hn::NegMulAdd(hn::Set(d, kB), odd_b, even_b);
  out[5 * step] = hn::Add(hn::NegMulAdd(both, in[3], in[1]), in[5]);
}

HWY_INLINE void transform_inputs_1d(const V (&in)[kSmallIn], V* out, ptrdiff_t step) {
  out[0] = hn::Sub(in[0], in[2]);
  out[step] = hn::Add(in[1], in[2]);
  out[2 * step] = hn::Sub(in[2], in[1]);
  out[3 * step] = hn::Sub(in[3], in[1]);
}

// out[i * step] = the i-th of two or four outputs in a row that products at six points stand for, or at four.
template <int kOut>
HWY_INLINE void transform_products_1d(const V (&in)[kLargeIn], V* out, ptrdiff_t step) {
  const D d;
  const V sum_a = hn::Add(in[1], in[2]), difference_a = hn::Sub(in[1], in[2]);
  const V sum_b = hn::Add(in[3], in[4]), difference_b = hn::Sub(in[3], in[4]);
  out[0] = hn::Add(in[0], hn::Add(sum_a, sum_b));
  const V first = hn::MulAdd(hn::Set(d, kA), difference_a, hn::Mul(hn::Set(d, kB), difference_b));
  if constexpr (kOut == 2) {
    out[step] = hn::Add(first, in[5]);
  } else {
    const V third = hn::MulAdd(hn::Set(d, kB2 * kB), difference_b, in[5]);
    out[step] = first;
    out[2 * step] = hn::MulAdd(hn::Set(d, kA2), sum_a, hn::Mul(hn::Set(d, kB2), sum_b));
    out[3 * step] = hn::MulAdd(hn::Set(d, kA2 * kA), difference_a, third);
  }
}

template <int kOut>
HWY_INLINE void transform_products_1d(const V (&in)[kSmallIn], V* out, ptrdiff_t step) {
  static_assert(kOut == 2);
  out[0] = hn::Add(in[0], hn::Add(in[1], in[2]));
  out[step] = hn::Add(hn::Sub(in[1], in[2]), in[3]);
}

// out[p * step] = values at point p of what the weights in a row stand for, times the factors that make the other two
// transforms cheap.
template <int kIn, int kTaps>
HWY_INLINE void transform_weights_1d(const V (&weights)[kTaps], V* out, ptrdiff_t step) {
  out[0] = weights[0];
  out[(kIn - 1) * step] = weights[kTaps - 1];
  if constexpr (kIn == kSmallIn) return evaluate_pair(weights, 1, 0.5F, out[step], out[2 * step]);
  evaluate_pair(weights, kA, 1 / (2 * kA2 * (kA2 - kB2)), out[step], out[2 * step]);
  evaluate_pair(weights, kB, 1 / (2 * kB2 * (kB2 - kA2)), out[3 * step], out[4 * step]);
}

// As many rows of pixels of a vector of channels as there are columns, some of which may lie outside of the image.
template <int kIn>
struct InputTile {
  const float* x;  // the vector in the first pixel
  int64_t row;     // elements from one row to the next
  int64_t pixel;
  int64_t channels = 0;  // of the vector, those that exist
  bool row_inside[kIn] = {};
  bool column_inside[kIn] = {};

  // kWhole: all pixels exist, and whole vectors can be read.
  template <bool kWhole>
  HWY_INLINE V load(int i, const float* from, bool inside) const {
    if (kWhole) return hn::LoadU(D(), from + i * row);
    return inside && row_inside[i] ? load_channels(from + i * row, channels) : hn::Zero(D());
  }
};

// Neither inlined nor unrolled: with more addresses at a time than registers the compiler would keep them in memory.
template <int kIn, bool kWhole>
HWY_NOINLINE void transform_inputs_of(const InputTile<kIn>& tile, float* out, int64_t plane) {
  V half[kIn * kIn];
  const float* x = tile.x;
#pragma GCC unroll 1
  for (int j = 0; j < kIn; ++j, x += tile.pixel) {
    const bool inside = tile.column_inside[j];
    V column[kIn];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) column[i] = tile.template load<kWhole>(i, x, inside);
    transform_inputs_1d(column, half + j, kIn);
  }
  const V* from = half;
#pragma GCC unroll 1
  for (int i = 0; i < kIn; ++i, from += kIn, out += kIn * plane) {
    V row[kIn], values[kIn];
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) row[j] = from[j];
    transform_inputs_1d(row, values, 1);
    for (int j = 0; j < kIn; ++j) hn::StoreU(values[j], D(), out + j * plane);
  }
}

template <int kIn>
void transform_inputs_with(const WinogradTask& task) {
  const WinogradShape& shape = task.shape;
  const int64_t pixels = shape.in[0] * shape.in[1];
  const int64_t plane = shape.transformed_plane(task.tiles);
  const float* end = task.x + shape.batch * shape.in_channels * pixels;
  for (int64_t t = 0; t < task.tiles; ++t) {
    const WinogradPlace place = place_of(shape, task.first_tile + t);
    const int64_t row = place.row - shape.pad[0];
    const int64_t column = place.column - shape.pad[1];
    const auto [down, right] = shape.dilation;
    InputTile<kIn> tile{.x = nullptr, .row = down * shape.in[1] * shape.in_block, .pixel = right * shape.in_block};
    bool whole = true;
    for (int i = 0; i < kIn; ++i) {
      tile.row_inside[i] = row + i * down >= 0 && row + i * down < shape.in[0];
      tile.column_inside[i] = column + i * right >= 0 && column + i * right < shape.in[1];
      whole = whole && tile.row_inside[i] && tile.column_inside[i];
    }
    const float* first =
        task.x + place.instance * shape.in_channels * pixels + (row * shape.in[1] + column) * shape.in_block;
    const int64_t reach = (kIn - 1) * (tile.row + tile.pixel) + winograd_lanes();
    float* out = task.transformed + t * shape.in_channels;
    for (int64_t c = 0; c < shape.in_channels; c += winograd_lanes()) {
      tile.x = first + channel_offset(c, shape.in_block, pixels);
      tile.channels = shape.in_channels - c;
      // What a vector has beyond its channels belongs to the next pixel, and the next tile is written over what becomes
      // of it; only behind the last pixel of all there is nothing to read.
      if (whole && (tile.channels >= winograd_lanes() || tile.x + reach <= end)) {
        transform_inputs_of<kIn, true>(tile, out + c, plane);
      } else {
        transform_inputs_of<kIn, false>(tile, out + c, plane);
      }
    }
  }
}

void transform_inputs(const WinogradTask& task) {
  task.shape.has_small_tiles ? transform_inputs_with<kSmallIn>(task) : transform_inputs_with<kLargeIn>(task);
}

template <int kIn, int kOut>
HWY_NOINLINE void transform_products(const float* products, int64_t plane, const float* bias, V* out) {
  const D d;
  V half[kOut * kIn];
#pragma GCC unroll 1
  for (int j = 0; j < kIn; ++j, products += plane) {
    const int64_t next = kIn * plane;
    V column[kIn];
#pragma GCC unroll 6
    for (int i = 0; i < kIn; ++i) column[i] = hn::LoadU(d, products + i * next);
    transform_products_1d<kOut>(column, half + j, kIn);
  }
  const V added = hn::LoadU(d, bias);
  const V* from = half;
#pragma GCC unroll 1
  for (int i = 0; i < kOut; ++i, from += kIn, out += kOut) {
    V row[kIn];
#pragma GCC unroll 6
    for (int j = 0; j < kIn; ++j) row[j] = from[j];
    transform_products_1d<kOut>(row, out, 1);
    for (int j = 0; j < kOut; ++j) out[j] = hn::Add(out[j], added);
  }
}

template <int kIn, int kOut>
void compute_outputs_of(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products) {
  const WinogradShape& shape = task.shape;
  multiply_at_points(task, begin, end - begin, unit, products);
  const int64_t pixels = shape.out[0] * shape.out[1], pixel = task.y_pixel;
  const int64_t plane = winograd_plane(end - begin, kWinogradUnit);
  const int64_t first = unit * kWinogradUnit;
  const int64_t channels = shape.unit_channels(unit);
  for (int64_t t = begin; t < end; ++t) {
    const WinogradPlace place = place_of(shape, task.first_tile + t);
    OutputTile tile{.y = nullptr,
                    .residuals = {},
                    .row = shape.dilation[0] * shape.out[1] * pixel,
                    .pixel = shape.dilation[1] * pixel,
                    .rows = outputs_inside<kOut>(shape, 0, place.row),
                    .columns = outputs_inside<kOut>(shape, 1, place.column)};
    const int64_t blocks = place.instance * (shape.out_channels / shape.out_block);
    const int64_t at = (blocks * pixels + place.row * shape.out[1] + place.column) * pixel;
    for (int64_t c = 0; c < channels; c += winograd_lanes()) {
      const int64_t offset = at + channel_offset(first + c, shape.out_block, pixels);
      tile.y = task.y + offset;
      tile.residuals = task.residuals + offset;
      tile.channels = channels - c;
      V out[kOut * kOut];
      transform_products<kIn, kOut>(products + (t - begin) * kWinogradUnit + c, plane, task.bias + first + c, out);
      store_tile<kOut>(tile, task.steps, out);
    }
  }
}

void compute_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products) {
  if (task.shape.has_small_tiles) return compute_outputs_of<kSmallIn, 2>(task, begin, end, unit, products);
  if (task.shape.taps[0] == 3) return compute_outputs_of<kLargeIn, 4>(task, begin, end, unit, products);
  compute_outputs_of<kLargeIn, 2>(task, begin, end, unit, products);
}

// A vector of output channels of one input channel: their weights, `next_output` apart, at all points.
template <int kIn, int kTaps>
HWY_INLINE void transform_weights_of(const float* weights, hn::Vec<hn::RebindToSigned<D>> next_output, V* out) {
  const D d;
  V half[kIn * kTaps];
  for (ptrdiff_t j = 0; j < kTaps; ++j) {
    V column[kTaps];
    for (ptrdiff_t i = 0; i < kTaps; ++i) column[i] = hn::GatherIndex(d, weights + i * kTaps + j, next_output);
    transform_weights_1d<kIn>(column, half + j, kTaps);
  }
  for (ptrdiff_t i = 0; i < kIn; ++i) {
    V row[kTaps];
    for (int j = 0; j < kTaps; ++j) row[j] = half[i * kTaps + j];
    transform_weights_1d<kIn>(row, out + i * kIn, 1);
  }
}

template <int kIn, int kTaps>
void transform_weights_with(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                            float* transformed) {
  transform_units<kIn * kIn>(shape, weights, begin, end, transformed,
                             [](const float* from, hn::Vec<hn::RebindToSigned<D>> next_output, int64_t, V* out)
                                 HWY_ATTR { transform_weights_of<kIn, kTaps>(from, next_output, out); });
}

void transform_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                       float* transformed) {
  if (shape.has_small_tiles) return transform_weights_with<kSmallIn, 3>(shape, weights, begin, end, transformed);
  if (shape.taps[0] == 3) return transform_weights_with<kLargeIn, 3>(shape, weights, begin, end, transformed);
  transform_weights_with<kLargeIn, 5>(shape, weights, begin, end, transformed);
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(transform_weights);
HWY_EXPORT(transform_inputs);
HWY_EXPORT(compute_outputs);

void transform_winograd_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                                float* transformed) {
  if (shape.is_line()) return transform_winograd_line_weights(shape, weights, begin, end, transformed);
  HWY_DYNAMIC_DISPATCH(transform_weights)(shape, weights, begin, end, transformed);
}

void transform_winograd_inputs(const WinogradTask& task) {
  if (task.shape.is_line()) return transform_winograd_line_inputs(task);
  HWY_DYNAMIC_DISPATCH(transform_inputs)(task);
}

void compute_winograd_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products) {
  if (task.shape.is_line()) return compute_winograd_line_outputs(task, begin, end, unit, products);
  HWY_DYNAMIC_DISPATCH(compute_outputs)(task, begin, end, unit, products);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

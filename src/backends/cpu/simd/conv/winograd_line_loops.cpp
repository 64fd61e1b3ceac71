// Winograd's algorithm for lines of weights, F(4, 3), F(4, 5) and F(4, 7), in one dimension: winograd_conv_loops.h.
//
// The points are 0, infinity and pairs +-x that are each other's reciprocals. On normal values of 160 channels the root
// mean square error is 1.3, 2.1 and 3.9 times that of sums in f32; of three weights at the usual 0, +-1, +-2 it would
// be 1.9, of seven at 0, +-1/2, +-1, +-2, +-4 fifteen times.
//
// In names and templates kTaps are those of a section (WinogradSections).
#include <algorithm>
#include <array>

#include "backends/cpu/simd/conv/winograd_conv_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/winograd_line_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/winograd_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

constexpr int kLineOut = static_cast<int>(kWinogradLineOut);

// Of each pair of points the positive one.
template <int kTaps>
struct LinePoints;
template <>
struct LinePoints<3> {
  static constexpr std::array<double, 2> x{2.0 / 3, 1.5};
};
template <>
struct LinePoints<5> {
  static constexpr std::array<double, 3> x{0.5, 1, 2};
};
template <>
struct LinePoints<7> {
  static constexpr std::array<double, 4> x{0.4, 0.8, 1.25, 2.5};
};

// The polynomials in z = x^2 from which all transforms follow.
template <int kTaps>
struct Line {
  static constexpr int kIn = kTaps - 1 + kLineOut;  // inputs of a tile, and points
  static constexpr int kPairs = kIn / 2 - 1;

  static constexpr double point(int pair) { return LinePoints<kTaps>::x[static_cast<size_t>(pair)]; }

  using Coefficients = std::array<float, kPairs + 1>;

  // The product of z - x^2 over all pairs but `left_out` (-1: over all).
  static constexpr Coefficients product(int left_out) {
    std::array<double, kPairs + 1> sum{1};
    int degree = 0;
    for (int pair = 0; pair < kPairs; ++pair) {
      if (pair == left_out) continue;
      const double square = point(pair) * point(pair);
      ++degree;
      for (int k = degree; k >= 0; --k) {
        const auto at = static_cast<size_t>(k);
        sum[at] = (k > 0 ? sum[at - 1] : 0) - (k < degree ? square * sum[at] : 0);
      }
    }
    Coefficients result{};
    for (size_t k = 0; k < result.size(); ++k) result[k] = static_cast<float>(sum[k]);
    return result;
  }

  // What the values of weights are multiplied with, so that the other two transforms are cheap.
  static constexpr double factor(int pair) {
    const double square = point(pair) * point(pair);
    double value = 2 * square;
    for (int other = 0; other < kPairs; ++other) {
      if (other != pair) value *= square - point(other) * point(other);
    }
    return 1 / value;
  }
  static constexpr double factor_at_zero() {
    double value = 1;
    for (int pair = 0; pair < kPairs; ++pair) value *= -point(pair) * point(pair);
    return 1 / value;
  }
};

// The sum of every second of `in` from `first` on, times coefficients.
template <int kCount, class Coefficients, size_t kIn>
HWY_INLINE V weighted(const Coefficients& coefficients, const V (&in)[kIn], int first) {
  const D d;
  V sum = hn::Mul(hn::Set(d, coefficients[0]), in[first]);
#pragma GCC unroll 8
  for (int k = 1; k < kCount; ++k) {
    const V next = in[first + 2 * k];
    sum = coefficients[static_cast<size_t>(k)] == 1
              ? hn::Add(sum, next)
              : hn::MulAdd(hn::Set(d, coefficients[static_cast<size_t>(k)]), next, sum);
  }
  return sum;
}

// Inputs of one line, `step` apart, of which those from `begin` to `end` exist, each with so many `channels` of the
// vector: their values at all points.
template <int kTaps>
HWY_NOINLINE void transform_line(const float* x, int64_t step, int begin, int end, int64_t channels, float* out,
                                 int64_t plane) {
  using L = Line<kTaps>;
  const D d;
  V in[L::kIn];
#pragma GCC unroll 16
  for (int i = 0; i < L::kIn; ++i) in[i] = i >= begin && i < end ? load_channels(x + i * step, channels) : hn::Zero(d);
  constexpr auto kAll = L::product(-1);
  hn::StoreU(weighted<L::kPairs + 1>(kAll, in, 0), d, out);
#pragma GCC unroll 4
  for (int pair = 0; pair < L::kPairs; ++pair) {
    const auto coefficients = L::product(pair);
    const V even = weighted<L::kPairs>(coefficients, in, 2), odd = weighted<L::kPairs>(coefficients, in, 1);
    const V point = hn::Set(d, static_cast<float>(L::point(pair)));
    hn::StoreU(hn::MulAdd(point, odd, even), d, out + (1 + 2 * pair) * plane);
    hn::StoreU(hn::NegMulAdd(point, odd, even), d, out + (2 + 2 * pair) * plane);
  }
  hn::StoreU(weighted<L::kPairs + 1>(kAll, in, 1), d, out + (L::kIn - 1) * plane);
}

// The first of the inputs from `begin` to `end` that lies at `place` or behind it.
int first_from(int64_t place, int64_t dilation, int64_t begin, int64_t end) {
  const int64_t first = place <= 0 ? 0 : (place + dilation - 1) / dilation;
  return static_cast<int>(std::clamp(first, begin, end));
}

template <int kTaps>
void transform_inputs_of(const WinogradTask& task) {
  constexpr int kIn = Line<kTaps>::kIn;
  const WinogradShape& shape = task.shape;
  const size_t axis = shape.line_axis();
  const int64_t pixels = shape.in[0] * shape.in[1];
  const int64_t plane = shape.transformed_plane(task.tiles), num_tiles = shape.tiles();
  const int64_t row_step = shape.in[1] * shape.in_block;
  const int64_t dilation = shape.dilation[axis];
  const int64_t step = dilation * (axis == 1 ? shape.in_block : row_step);
  for (int64_t t = 0; t < shape.transformed_rows(task.tiles); ++t) {
    // Behind the last one of all there is nothing that an output needs: the last one stands for it.
    const WinogradPlace place = place_of(shape, std::min(task.first_tile + t, num_tiles - 1));
    const std::array<int64_t, 2> at{place.row - shape.pad[0], place.column - shape.pad[1]};
    // Across the line there may be padding, too.
    const bool is_beside = at[1 - axis] < 0 || at[1 - axis] >= shape.in[1 - axis];
    const int begin = first_from(-at[axis], dilation, 0, kIn);
    const int end = is_beside ? begin : first_from(shape.in[axis] - at[axis], dilation, begin, kIn);
    const float* first =
        task.x + place.instance * shape.in_channels * pixels + at[0] * row_step + at[1] * shape.in_block;
    float* out = task.transformed + t * shape.in_channels;
    for (int64_t c = 0; c < shape.in_channels; c += winograd_lanes()) {
      transform_line<kTaps>(first + channel_offset(c, shape.in_block, pixels), step, begin, end, shape.in_channels - c,
                            out + c, plane);
    }
  }
}

// Products at all points become four outputs.
template <int kTaps>
HWY_NOINLINE void transform_products(const float* products, int64_t plane, const float* bias, V* out) {
  using L = Line<kTaps>;
  const D d;
  const V added = hn::LoadU(d, bias);
  out[0] = hn::Add(hn::LoadU(d, products), added);
  out[1] = out[2] = added;
  out[3] = hn::Add(hn::LoadU(d, products + (L::kIn - 1) * plane), added);
#pragma GCC unroll 4
  for (int pair = 0; pair < L::kPairs; ++pair) {
    const double x = L::point(pair);
    const V plus = hn::LoadU(d, products + (1 + 2 * pair) * plane);
    const V minus = hn::LoadU(d, products + (2 + 2 * pair) * plane);
    const V sum = hn::Add(plus, minus), difference = hn::Sub(plus, minus);
    out[0] = hn::Add(out[0], sum);
    out[1] = hn::MulAdd(hn::Set(d, static_cast<float>(x)), difference, out[1]);
    out[2] = hn::MulAdd(hn::Set(d, static_cast<float>(x * x)), sum, out[2]);
    out[3] = hn::MulAdd(hn::Set(d, static_cast<float>(x * x * x)), difference, out[3]);
  }
}

template <int kTaps>
void compute_outputs_of(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products) {
  const WinogradShape& shape = task.shape;
  multiply_at_points(task, begin, end - begin, unit, products);
  const size_t axis = shape.line_axis();
  const int64_t pixels = shape.out[0] * shape.out[1];
  const int64_t plane = winograd_plane(end - begin, kWinogradUnit);
  const int64_t first = unit * kWinogradUnit;
  const int64_t channels = shape.unit_channels(unit);
  const int64_t pixel = task.y_pixel, row = shape.out[1] * pixel;
  for (int64_t t = begin; t < end; ++t) {
    const WinogradPlace place = place_of(shape, task.first_tile + t);
    OutputTile tile{.y = nullptr,
                    .residuals = {},
                    .row = 0,
                    .pixel = shape.dilation[axis] * (axis == 1 ? pixel : row),
                    .rows = 1,
                    .columns = outputs_inside<kLineOut>(shape, axis, axis == 1 ? place.column : place.row)};
    if (tile.columns == 0) continue;
    const int64_t blocks = place.instance * (shape.out_channels / shape.out_block);
    const int64_t at = blocks * pixels * pixel + place.row * row + place.column * pixel;
    for (int64_t c = 0; c < channels; c += winograd_lanes()) {
      const int64_t offset = at + channel_offset(first + c, shape.out_block, pixels);
      tile.y = task.y + offset;
      tile.residuals = task.residuals + offset;
      tile.channels = channels - c;
      V out[kLineOut];
      transform_products<kTaps>(products + (t - begin) * kWinogradUnit + c, plane, task.bias + first + c, out);
      store_tile<kLineOut>(tile, task.steps, out);
    }
  }
}

// A vector of output channels of one input channel: `count` weights of a section, `next_output` apart, at all points.
template <int kTaps>
HWY_INLINE void transform_weights_of(const float* weights, hn::Vec<hn::RebindToSigned<D>> next_output, int64_t count,
                                     V* out) {
  using L = Line<kTaps>;
  const D d;
  V line[kTaps];
  for (int i = 0; i < kTaps; ++i) line[i] = i < count ? hn::GatherIndex(d, weights + i, next_output) : hn::Zero(d);
  out[0] = hn::Mul(line[0], hn::Set(d, static_cast<float>(L::factor_at_zero())));
  for (int pair = 0; pair < L::kPairs; ++pair) {
    evaluate_pair(line, static_cast<float>(L::point(pair)), static_cast<float>(L::factor(pair)), out[1 + 2 * pair],
                  out[2 + 2 * pair]);
  }
  out[L::kIn - 1] = line[kTaps - 1];
}

template <int kTaps>
void transform_weights_with(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                            float* transformed) {
  const int64_t taps = shape.taps[0] * shape.taps[1], last = shape.num_sections() - 1;
  const auto transform = [taps, last](const float* from, hn::Vec<hn::RebindToSigned<D>> next_output, int64_t section,
                                      V* out) HWY_ATTR {
    const int64_t first = section * kWinogradLineOut;
    transform_weights_of<kTaps>(from + first, next_output, section < last ? kWinogradLineOut : taps - first, out);
  };
  transform_units<Line<kTaps>::kIn>(shape, weights, begin, end, transformed, transform);
}

void transform_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                       float* transformed) {
  switch (shape.sections().taps) {
    case 3: return transform_weights_with<3>(shape, weights, begin, end, transformed);
    case 5: return transform_weights_with<5>(shape, weights, begin, end, transformed);
    default: return transform_weights_with<7>(shape, weights, begin, end, transformed);
  }
}

void transform_inputs(const WinogradTask& task) {
  switch (task.shape.sections().taps) {
    case 3: return transform_inputs_of<3>(task);
    case 5: return transform_inputs_of<5>(task);
    default: return transform_inputs_of<7>(task);
  }
}

void compute_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit, float* products) {
  switch (task.shape.sections().taps) {
    case 3: return compute_outputs_of<3>(task, begin, end, unit, products);
    case 5: return compute_outputs_of<5>(task, begin, end, unit, products);
    default: return compute_outputs_of<7>(task, begin, end, unit, products);
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(transform_weights);
HWY_EXPORT(transform_inputs);
HWY_EXPORT(compute_outputs);

}  // namespace

void transform_winograd_line_weights(const WinogradShape& shape, const float* weights, int64_t begin, int64_t end,
                                     float* transformed) {
  HWY_DYNAMIC_DISPATCH(transform_weights)(shape, weights, begin, end, transformed);
}

void transform_winograd_line_inputs(const WinogradTask& task) { HWY_DYNAMIC_DISPATCH(transform_inputs)(task); }

void compute_winograd_line_outputs(const WinogradTask& task, int64_t begin, int64_t end, int64_t unit,
                                   float* products) {
  HWY_DYNAMIC_DISPATCH(compute_outputs)(task, begin, end, unit, products);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

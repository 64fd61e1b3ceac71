// The loops of convolutions in groups, for one way in which lanes of outputs meet inputs. Each way has a source of its
// own that includes this: all in one took the compiler longer than any other file.
#if defined(AG_SIMD_GROUPED_CONV_TILES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_GROUPED_CONV_TILES_INL_H
#undef AG_SIMD_GROUPED_CONV_TILES_INL_H
#else
#define AG_SIMD_GROUPED_CONV_TILES_INL_H
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/conv/grouped_conv_loops.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
using LaneIndices = decltype(hn::IndicesFromVec(D(), VI()));

inline int64_t lanes_of_tile() { return static_cast<int64_t>(hn::Lanes(D())); }

// Which inputs the lanes of a vector of outputs meet.
enum class Source : uint8_t { same_lanes, own_group, one_channel };

// Of a tile. A row of inputs is loaded once for both rows of outputs.
constexpr int kRows = 2;
// Columns of a tile: with the sums and two rows of taps the registers of the target are used but not exceeded.
constexpr int kWideTile = HWY_TARGET <= HWY_AVX3 ? 7 : 4;
constexpr int kNarrowTile = 4;

// kRows rows and some columns of one vector of channels.
struct Tile {
  const GroupedConvTask& task;
  const float* x;        // of the first channel that the vector meets, in the first pixel
  const float* weights;  // bias, then [input channel, kernel row, kernel column]
  float* y;              // of the vector, in the first pixel
  ConvResiduals residuals;
  int64_t row = 0;
  int64_t rows = 0;
  int64_t column = 0;

  // Distances of pixels and rows.
  int64_t pixel() const { return task.shape.block; }
  int64_t in_row() const { return task.shape.in[1] * pixel(); }
  int64_t out_row() const { return task.shape.out[1] * pixel(); }
  int64_t at(int64_t r) const { return (row + r) * out_row() + column * pixel(); }
  // Of the group's input channel i, counted from x.
  int64_t channel(int64_t i) const { return i < pixel() ? i : i / pixel() * task.shape.in[0] * in_row() + i % pixel(); }
};

// Sums of a tile. What indexes them are constants, not variables of loops to be unrolled: only then does the compiler
// keep them in registers.
template <int kPixels>
struct Sums {
  V rows[kRows][kPixels];
};

// Calls step<0>(), step<1>(), ..
template <int... kIndices, class Step>
HWY_INLINE void for_each_of(std::integer_sequence<int, kIndices...>, const Step& step) {
  (step.template run<kIndices>(), ...);
}

template <int kCount, class Step>
HWY_INLINE void for_each_index(const Step& step) {
  for_each_of(std::make_integer_sequence<int, kCount>(), step);
}

// One column of inputs meets the taps of the windows that it lies in.
template <Source kSource, int kTaps, int kStride, int kPixels, bool kUpper, bool kLower>
struct InputColumn {
  template <int kColumn>
  HWY_INLINE void run() const {
    if ((inside >> kColumn & 1) == 0) return;
    const D d;
    const float* from = x + kColumn * pixel;
    V in;
    if constexpr (kSource == Source::one_channel) {
      in = hn::Set(d, *from);
    } else if constexpr (kSource == Source::own_group) {
      in = hn::TableLookupLanes(hn::LoadU(d, from), lanes);
    } else {
      in = hn::LoadU(d, from);
    }
    add<kColumn>(in, std::make_integer_sequence<int, kTaps>());
  }

  template <int kColumn, int... kTap>
  HWY_INLINE void add(V in, std::integer_sequence<int, kTap...>) const {
    (add_tap<kColumn, kTap>(in), ...);
  }

  template <int kColumn, int kTap>
  HWY_INLINE void add_tap(V in) const {
    constexpr int kPixel = (kColumn - kTap) / kStride;
    if constexpr (kColumn >= kTap && (kColumn - kTap) % kStride == 0 && kPixel < kPixels) {
      if constexpr (kUpper) sums.rows[0][kPixel] = hn::MulAdd(in, upper[kTap], sums.rows[0][kPixel]);
      if constexpr (kLower) sums.rows[1][kPixel] = hn::MulAdd(in, lower[kTap], sums.rows[1][kPixel]);
    }
  }

  const float* x;
  int64_t pixel;
  uint32_t inside;  // bit j: does the j-th column exist?
  LaneIndices lanes;
  const V (&upper)[kTaps];
  const V (&lower)[kTaps];
  Sums<kPixels>& sums;
};

template <int kTaps>
struct LoadTaps {
  template <int kTap>
  HWY_INLINE void run() const {
    taps[kTap] = hn::LoadU(D(), from + kTap * lanes_of_tile());
  }
  const float* from;
  V (&taps)[kTaps];
};

// One row of inputs meets one row of weights of the upper row of outputs, of the lower one, or of both.
template <Source kSource, int kTaps, int kStride, int kPixels, bool kUpper, bool kLower>
HWY_INLINE void add_input_row(const Tile& tile, const float* x, const float* upper, const float* lower, uint32_t inside,
                              Sums<kPixels>& sums) {
  constexpr int kColumns = (kPixels - 1) * kStride + kTaps;
  const GroupedConvShape& shape = tile.task.shape;
  const int64_t depth = kSource == Source::same_lanes ? 1 : shape.group_size;
  const int64_t next_weights = shape.kernel[0] * kTaps * lanes_of_tile();
  const VI group_begin = hn::AndNot(hn::Set(DI(), static_cast<int32_t>(shape.group_size - 1)), hn::Iota(DI(), 0));
  for (int64_t i = 0; i < depth; ++i, upper += next_weights, lower += next_weights) {
    V upper_taps[kTaps];
    V lower_taps[kTaps];
    if constexpr (kUpper) for_each_index<kTaps>(LoadTaps<kTaps>{upper, upper_taps});
    if constexpr (kLower) for_each_index<kTaps>(LoadTaps<kTaps>{lower, lower_taps});
    const LaneIndices lanes = hn::IndicesFromVec(D(), hn::Add(group_begin, hn::Set(DI(), static_cast<int32_t>(i))));
    for_each_index<kColumns>(InputColumn<kSource, kTaps, kStride, kPixels, kUpper, kLower>{
        .x = kSource == Source::one_channel ? x + tile.channel(i) : x,
        .pixel = tile.pixel(),
        .inside = inside,
        .lanes = lanes,
        .upper = upper_taps,
        .lower = lower_taps,
        .sums = sums});
  }
}

inline HWY_NOINLINE void apply_step(const Tile& tile, const ConvStep& step, int pixels) {
  const D d;
  const float* const from = tile.residuals.of(step);
  apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
    for (int64_t r = 0; r < tile.rows; ++r) {
      for (int c = 0; c < pixels; ++c) {
        const int64_t at = tile.at(r) + c * tile.pixel();
        const auto residual = [&]() HWY_ATTR { return hn::LoadU(d, from + at); };
        hn::StoreU(f(hn::LoadU(d, tile.y + at), residual), d, tile.y + at);
      }
    }
  });
}

// The cheapest steps happen before the sums are stored.
enum class FirstStep : uint8_t { none, relu, hard_swish };

inline FirstStep first_step(std::span<const ConvStep> steps) {
  if (steps.empty()) return FirstStep::none;
  if (steps[0].kind == ConvStep::Kind::hard_swish) return FirstStep::hard_swish;
  const bool is_relu = steps[0].kind == ConvStep::Kind::clip && steps[0].p == 0 && std::isinf(steps[0].q);
  return is_relu ? FirstStep::relu : FirstStep::none;
}

template <int kPixels>
struct StorePixel {
  template <int kPixel>
  HWY_INLINE void run() const {
    store(sums.rows[0][kPixel], 0, kPixel);
    if (tile.rows > 1) store(sums.rows[1][kPixel], 1, kPixel);
  }
  HWY_INLINE void store(V sum, int64_t row, int64_t column) const {
    const D d;
    if (first == FirstStep::relu) sum = at_least(d, hn::Zero(d), sum);
    if (first == FirstStep::hard_swish) sum = formulas::fast<formulas::HardSwish>(Lanes(sum)).v;
    hn::StoreU(sum, d, tile.y + tile.at(row) + column * tile.pixel());
  }
  const Tile& tile;
  const Sums<kPixels>& sums;
  FirstStep first;
};

template <int kPixels>
struct ClearPixel {
  template <int kPixel>
  HWY_INLINE void run() const {
    sums.rows[0][kPixel] = sums.rows[1][kPixel] = bias;
  }
  V bias;
  Sums<kPixels>& sums;
};

template <Source kSource, int kTaps, int kStride, int kPixels>
HWY_INLINE void compute_tile(const Tile& tile) {
  const GroupedConvShape& shape = tile.task.shape;
  const int64_t lanes = lanes_of_tile();
  Sums<kPixels> sums;
  for_each_index<kPixels>(ClearPixel<kPixels>{hn::LoadU(D(), tile.weights), sums});
  const int64_t first_column = tile.column * kStride - shape.pad[1];
  uint32_t inside = 0;
  for (int j = 0; j < (kPixels - 1) * kStride + kTaps; ++j) {
    inside |= static_cast<uint32_t>(first_column + j >= 0 && first_column + j < shape.in[1]) << j;
  }
  const int64_t first_row = tile.row * shape.stride[0] - shape.pad[0];
  const int64_t end = (tile.rows - 1) * shape.stride[0] + shape.kernel[0];
  for (int64_t r = std::max<int64_t>(0, -first_row); r < std::min(end, shape.in[0] - first_row); ++r) {
    const int64_t below = r - shape.stride[0];
    const float* x = tile.x + (first_row + r) * tile.in_row() + first_column * tile.pixel();
    const float* upper = tile.weights + lanes + r * kTaps * lanes;
    const float* lower = tile.weights + lanes + below * kTaps * lanes;
    const bool meets_upper = r < shape.kernel[0];
    const bool meets_lower = tile.rows == kRows && below >= 0 && below < shape.kernel[0];
    if (meets_upper && meets_lower) {
      add_input_row<kSource, kTaps, kStride, kPixels, true, true>(tile, x, upper, lower, inside, sums);
    } else if (meets_upper) {
      add_input_row<kSource, kTaps, kStride, kPixels, true, false>(tile, x, upper, upper, inside, sums);
    } else if (meets_lower) {
      add_input_row<kSource, kTaps, kStride, kPixels, false, true>(tile, x, lower, lower, inside, sums);
    }
  }
  const FirstStep first = first_step(tile.task.steps);
  for_each_index<kPixels>(StorePixel<kPixels>{tile, sums, first});
  for (const ConvStep& step : tile.task.steps.subspan(first == FirstStep::none ? 0 : 1)) {
    apply_step(tile, step, kPixels);
  }
}

using TileFunction = void (*)(const Tile& tile, int64_t columns);

template <Source kSource, int kTaps, int kStride>
void compute_tile_of(const Tile& tile, int64_t columns) {
  if (columns == 1) return compute_tile<kSource, kTaps, kStride, 1>(tile);
  if (columns == kNarrowTile) return compute_tile<kSource, kTaps, kStride, kNarrowTile>(tile);
  if constexpr (kWideTile != kNarrowTile) compute_tile<kSource, kTaps, kStride, kWideTile>(tile);
}

template <Source kSource, int kTaps>
TileFunction function_with_stride(const GroupedConvShape& shape) {
  return shape.stride[1] == 1 ? &compute_tile_of<kSource, kTaps, 1> : &compute_tile_of<kSource, kTaps, 2>;
}

template <Source kSource>
TileFunction function_with_taps(const GroupedConvShape& shape) {
  switch (shape.kernel[1]) {
    case 3: return function_with_stride<kSource, 3>(shape);
    case 5: return function_with_stride<kSource, 5>(shape);
    default: return function_with_stride<kSource, 7>(shape);
  }
}

// Some rows, tile by tile.
template <Source kSource>
class Band {
 public:
  explicit Band(const GroupedConvTask& task)
      : task_(task), shape_(task.shape), compute_(function_with_taps<kSource>(task.shape)) {}

  // All vectors of a tile before the next one: memory is read from front to back.
  void run_by_place() const {
    for (int64_t row = task_.first_row; row < end_row(); row += kRows) {
      for (int64_t done = 0, columns = 0; done < shape_.out[1]; done += columns) {
        columns = next_columns(done);
        for (int64_t v = 0; v < shape_.num_vectors(lanes_of_tile()); ++v) run_tile(vector(v), row, done, columns);
      }
    }
  }

  // All tiles of a vector before the next one: weights stay in the first cache.
  void run_by_vector() const {
    for (int64_t v = 0; v < shape_.num_vectors(lanes_of_tile()); ++v) {
      const Tile tile = vector(v);
      for (int64_t done = 0, columns = 0; done < shape_.out[1]; done += columns) {
        columns = next_columns(done);
        for (int64_t row = task_.first_row; row < end_row(); row += kRows) run_tile(tile, row, done, columns);
      }
    }
  }

 private:
  int64_t end_row() const { return task_.first_row + task_.rows; }
  // Tiles may overlap at the end: what is written twice is the same.
  int64_t next_columns(int64_t done) const {
    const int64_t rest = shape_.out[1] - done;
    if (shape_.out[1] >= kWideTile && rest > (kWideTile == kNarrowTile ? 1 : kNarrowTile)) return kWideTile;
    return shape_.out[1] >= kNarrowTile && rest > 1 ? kNarrowTile : 1;
  }

  // Of a channel of the first pixel.
  int64_t offset(int64_t channel, const std::array<int64_t, 2>& plane) const {
    if (shape_.block == shape_.channels) return channel;
    return channel / shape_.block * shape_.block * plane[0] * plane[1] + channel % shape_.block;
  }

  Tile vector(int64_t v) const {
    const int64_t lanes = lanes_of_tile();
    const int64_t channel = shape_.first_channel(v, lanes);
    const int64_t met = shape_.group_size > lanes ? channel / shape_.group_size * shape_.group_size : channel;
    const int64_t out = offset(channel, shape_.out);
    return {.task = task_,
            .x = task_.x + offset(met, shape_.in),
            .weights = task_.weights + v * (1 + shape_.taps()) * lanes,
            .y = task_.y + out,
            .residuals = task_.residuals + out};
  }

  void run_tile(Tile tile, int64_t row, int64_t done, int64_t columns) const {
    tile.row = row;
    tile.rows = std::min<int64_t>(kRows, end_row() - row);
    tile.column = std::min(done, shape_.out[1] - columns);
    compute_(tile, columns);
  }

  const GroupedConvTask& task_;
  const GroupedConvShape& shape_;
  TileFunction compute_;
};

// Inputs of networks come from the caches of other threads or from memory, which takes longer than the few products of
// small groups, unless it is read from front to back. Larger groups have larger weights; their bands of rows fit the
// second cache, since the vectors of one pixel share pages.
template <Source kSource>
void compute_rows(const GroupedConvTask& task) {
  constexpr int64_t kLargeGroup = 16;
  constexpr int64_t kBandElements = int64_t{64} * 1024;
  const GroupedConvShape& shape = task.shape;
  if (shape.group_size < kLargeGroup) return Band<kSource>(task).run_by_place();
  const int64_t row_elements = shape.in[1] * shape.channels * shape.stride[0];
  const int64_t band = std::max<int64_t>(1, kBandElements / row_elements / kRows) * kRows;
  GroupedConvTask part = task;
  const int64_t end = task.first_row + task.rows;
  for (; part.first_row < end; part.first_row += band) {
    part.rows = std::min(band, end - part.first_row);
    Band<kSource>(part).run_by_vector();
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

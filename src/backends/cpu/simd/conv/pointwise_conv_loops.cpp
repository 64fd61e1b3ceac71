#include "backends/cpu/simd/conv/pointwise_conv_loops.h"

#include <algorithm>

#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/pointwise_conv_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/linear/micro_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kVectors = 2;  // of a panel
// With two vectors of sums for each row, two of weights and a factor: 15 of 16 registers, or 27 of 32.
constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;
// Input channels of a panel that stay in the first cache with the rows that meet them.
constexpr int64_t kMaxDepth = 256;
constexpr int64_t kLine = 64 / sizeof(float);
// Lines that are fetched together: those of a step, at least one.
constexpr int64_t kLines = std::max<int64_t>(1, kVectors* HWY_LANES(float) / kLine);
// Weights beyond this come from memory, and are fetched ahead: so many would push what is read next out of the caches.
constexpr int64_t kNearWeights = int64_t{128} * 1024;
// How far ahead of where they are multiplied weights are fetched where a panel meets one tile of rows.
constexpr int64_t kAhead = 128 * kLine;
// Up to so many rows weights from far away are read in the order in which they lie there.
constexpr int64_t kStreamedRows = 32;
// Elements of a block of pixels, which is read once for each panel: part of the second cache.
constexpr int64_t kBlockElements = int64_t{40} * 1024;

HWY_INLINE int64_t lanes_of_target() { return static_cast<int64_t>(hn::Lanes(D())); }

// Some input channels of all pixels of a block with one panel.
struct Product {
  const float* x;
  int64_t x_stride;
  const float* panel;
  const float* bias;
  const float* residual;
  float* y;
  int64_t y_stride;
  int64_t depth;
  bool is_first;  // of the blocks of input channels
  bool is_last;
  std::span<const ConvStep> steps;
  int64_t columns;
  // What is multiplied next is fetched meanwhile, kLines in every so many steps of a tile; null: nothing is.
  const float* next;
  int64_t steps_of_lines;
};

// A vector of the last panel, of which only some columns exist.
template <bool kWhole>
HWY_INLINE V load_columns(const float* from, int64_t columns, int v) {
  const D d;
  const int64_t left = columns - v * lanes_of_target();
  if (kWhole || left >= lanes_of_target()) return hn::LoadU(d, from + v * lanes_of_target());
  return left > 0 ? load_some(d, from + v * lanes_of_target(), static_cast<size_t>(left), hn::Zero(d)) : hn::Zero(d);
}

template <bool kWhole>
HWY_INLINE void store_columns(V value, float* to, int64_t columns, int v) {
  const D d;
  const int64_t left = columns - v * lanes_of_target();
  if (kWhole || left >= lanes_of_target()) return hn::StoreU(value, d, to + v * lanes_of_target());
  if (left > 0) store_some(d, value, to + v * lanes_of_target(), static_cast<size_t>(left));
}

// The epilogue of finished rows, in place: what is in registers across the loops of all steps would go through memory
// as well, on the stack, where by bad luck it lies as far into a page as what the products read, which then wait for
// it. Any number of rows: a copy for each was most of what the compiler had to do here.
template <int kUsed, bool kWhole>
HWY_NOINLINE void finish_rows(const Product& product, int64_t at, int rows) {
  const D d;
  for (const ConvStep& step : product.steps) {
    apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
      for (int r = 0; r < rows; ++r) {
        const int64_t row = at + r * product.y_stride;
#pragma GCC unroll 2
        for (int v = 0; v < kUsed; ++v) {
          const auto residual = [&]() HWY_ATTR {
            return load_columns<kWhole>(product.residual + row, product.columns, v);
          };
          const V sum = load_columns<kWhole>(product.y + row, product.columns, v);
          store_columns<kWhole>(f(sum, residual), product.y + row, product.columns, v);
        }
      }
    });
  }
}

// With the first `kUsed` vectors of a panel; `kFetches`: lines of what is multiplied next in every so many steps. Of
// its own, so that its sums stay in registers: inside its callers those of few rows went through memory in each step.
template <int kCount, int kUsed, bool kWhole, bool kFetches>
HWY_NOINLINE void multiply_rows(const Product& product, int64_t row) {
  const D d;
  const int64_t lanes = lanes_of_target();
  const int64_t at = row * product.y_stride;
  V sums[kCount][kUsed];
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kUsed; ++v) {
      sums[r][v] = product.is_first ? hn::LoadU(d, product.bias + v * lanes)
                                    : load_columns<kWhole>(product.y + at + r * product.y_stride, product.columns, v);
    }
  }
  const float* x = product.x + row * product.x_stride;
  const float* panel = product.panel;
  const auto multiply = [&](int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t k = begin; k < end; ++k, panel += kVectors * lanes) {
      const V first = hn::LoadU(d, panel), second = hn::LoadU(d, panel + lanes);
#pragma GCC unroll 12
      for (int r = 0; r < kCount; ++r) {
        const V factor = hn::Set(d, x[r * product.x_stride + k]);
        sums[r][0] = hn::MulAdd(factor, first, sums[r][0]);
        if constexpr (kUsed == 2) sums[r][1] = hn::MulAdd(factor, second, sums[r][1]);
      }
    }
  };
  int64_t k = 0;
  if constexpr (kFetches) {
    const int64_t step = product.steps_of_lines;
    const float* next = product.next + row / kRows * (product.depth / step) * kLines * kLine;
    for (; k + step <= product.depth; k += step, next += kLines * kLine) {
#pragma GCC unroll 2
      for (int64_t line = 0; line < kLines; ++line) hwy::Prefetch(next + line * kLine);
      multiply(k, k + step);
    }
  }
  multiply(k, product.depth);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kUsed; ++v) {
      store_columns<kWhole>(sums[r][v], product.y + at + r * product.y_stride, product.columns, v);
    }
  }
  if (product.is_last && !product.steps.empty()) finish_rows<kUsed, kWhole>(product, at, kCount);
}

// The last rows in at most two tiles. One or two rows alone would wait for each sum.
template <int kUsed, bool kWhole, bool kFetches>
HWY_INLINE void multiply_last_rows(const Product& product, int64_t row, int64_t rows) {
  switch (rows) {
    case 1: return multiply_rows<1, kUsed, kWhole, kFetches>(product, row);
    case 2: return multiply_rows<2, kUsed, kWhole, kFetches>(product, row);
    case 3: return multiply_rows<3, kUsed, kWhole, kFetches>(product, row);
    case 4: return multiply_rows<4, kUsed, kWhole, kFetches>(product, row);
    case 5: return multiply_rows<5, kUsed, kWhole, kFetches>(product, row);
    case 6: return multiply_rows<6, kUsed, kWhole, kFetches>(product, row);
    case 7:
      multiply_rows<4, kUsed, kWhole, kFetches>(product, row);
      return multiply_rows<3, kUsed, kWhole, kFetches>(product, row + 4);
    case 8:
      multiply_rows<4, kUsed, kWhole, kFetches>(product, row);
      return multiply_rows<4, kUsed, kWhole, kFetches>(product, row + 4);
    default: return;
  }
}

template <int kUsed, bool kWhole, bool kFetches>
HWY_NOINLINE void multiply_block(const Product& product, int64_t rows) {
  constexpr int64_t kSmall = 6;
  int64_t row = 0;
  if constexpr (kRows > kSmall) {
    for (; row + kRows <= rows; row += kRows) multiply_rows<kRows, kUsed, kWhole, kFetches>(product, row);
  }
  for (; row + kSmall + 2 < rows || row + kSmall == rows; row += kSmall)
    multiply_rows<kSmall, kUsed, kWhole, kFetches>(product, row);
  multiply_last_rows<kUsed, kWhole, kFetches>(product, row, rows - row);
}

int64_t tiles_of(int64_t rows) { return (rows + kRows - 1) / kRows; }
int64_t panel_width_of_target() { return kVectors * lanes_of_target(); }
int64_t rows_of_target() { return kRows; }

void pack(const float* weights, int64_t out_channels, int64_t in_channels, float* packed) {
  const int64_t width = panel_width_of_target();
  for (int64_t first = 0; first < out_channels; first += width, packed += in_channels * width) {
    const int64_t given = std::min(width, out_channels - first);
    if (given < width) std::fill_n(packed, in_channels * width, 0.0F);
    for (int64_t c = 0; c < given; ++c) {
      const float* from = weights + (first + c) * in_channels;
      for (int64_t k = 0; k < in_channels; ++k) packed[k * width + c] = from[k];
    }
  }
}

// Some pixels and input channels. What is multiplied next lies `ahead` elements behind what is; 0: it is not fetched.
struct Block {
  int64_t row, rows;
  int64_t k, depth;
  int64_t ahead;
};

void multiply_panel(const PointwiseTask& task, const Block& block, int64_t p) {
  const int64_t width = panel_width_of_target();
  const float* const panel = task.panels + (p * task.in_channels + block.k) * width;
  const int64_t at = block.row * task.out_channels + p * width;
  const Product product{.x = task.x + block.row * task.x_stride + block.k,
                        .x_stride = task.x_stride,
                        .panel = panel,
                        .bias = task.bias + p * width,
                        .residual = task.residual ? task.residual + at : nullptr,
                        .y = task.y + at,
                        .y_stride = task.out_channels,
                        .depth = block.depth,
                        .is_first = block.k == 0,
                        .is_last = block.k + block.depth == task.in_channels,
                        .steps = task.steps,
                        .columns = std::min(width, task.out_channels - p * width),
                        .next = block.ahead > 0 ? panel + block.ahead : nullptr,
                        .steps_of_lines = std::max<int64_t>(1, tiles_of(block.rows) * kLines * kLine / width)};
  const int64_t lanes = lanes_of_target();
  if (product.columns == width) {
    return product.next ? multiply_block<2, true, true>(product, block.rows)
                        : multiply_block<2, true, false>(product, block.rows);
  }
  if (product.columns > lanes) return multiply_block<2, false, false>(product, block.rows);
  return product.columns == lanes ? multiply_block<1, true, false>(product, block.rows)
                                  : multiply_block<1, false, false>(product, block.rows);
}

// Panel after panel: few rows meet weights from far away in the order in which those lie there.
void stream_panels(const PointwiseTask& task, Block block, int64_t depth) {
  const int64_t width = panel_width_of_target();
  const int64_t ahead = tiles_of(block.rows) == 1 ? kAhead : depth * width;
  for (int64_t p = task.first_panel; p < task.end_panel; ++p) {
    for (block.k = 0; block.k < task.in_channels; block.k += depth) {
      block.depth = std::min(depth, task.in_channels - block.k);
      const int64_t left = ((task.end_panel - p) * task.in_channels - block.k - block.depth) * width;
      block.ahead = left >= ahead ? ahead : 0;
      multiply_panel(task, block, p);
    }
  }
}

// Some input channels of all panels, so that rows stay in the first cache.
void walk_panels(const PointwiseTask& task, Block block, int64_t depth, bool is_far) {
  for (block.k = 0; block.k < task.in_channels; block.k += depth) {
    block.depth = std::min(depth, task.in_channels - block.k);
    for (int64_t p = task.first_panel; p < task.end_panel; ++p) {
      block.ahead = is_far && p + 1 < task.end_panel ? task.in_channels * panel_width_of_target() : 0;
      multiply_panel(task, block, p);
    }
  }
}

void run(const PointwiseTask& task) {
  const int64_t turns = (task.in_channels + kMaxDepth - 1) / kMaxDepth;
  const int64_t depth = (task.in_channels + turns - 1) / turns;
  const int64_t most = std::max<int64_t>(kBlockElements / depth / kRows, 4) * kRows;
  const int64_t blocks = (task.pixels + most - 1) / most;
  const int64_t rows = (task.pixels + blocks - 1) / blocks;
  const bool is_far = task.in_channels * task.out_channels > kNearWeights;
  for (int64_t row = 0; row < task.pixels; row += rows) {
    const Block block{.row = row, .rows = std::min(rows, task.pixels - row), .k = 0, .depth = 0, .ahead = 0};
    if (is_far && task.pixels <= kStreamedRows) {
      stream_panels(task, block, depth);
    } else {
      walk_panels(task, block, depth, is_far);
    }
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(panel_width_of_target);
HWY_EXPORT(rows_of_target);
HWY_EXPORT(pack);
HWY_EXPORT(run);

int64_t pointwise_panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width_of_target)(); }
int64_t pointwise_rows() { return HWY_DYNAMIC_DISPATCH(rows_of_target)(); }

void pack_pointwise_weights(const float* weights, int64_t out_channels, int64_t in_channels, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack)(weights, out_channels, in_channels, packed);
}

void run_pointwise(const PointwiseTask& task) { HWY_DYNAMIC_DISPATCH(run)(task); }

namespace {

// Whether shares of panels are more even than shares of tiles of pixels; where both are alike, fewer numbers are read
// by every thread.
bool shares_panels(const PointwiseTask& task, int64_t tiles, int threads) {
  const int64_t panels = task.end_panel - task.first_panel;
  const auto largest = [&](int64_t parts, int64_t others) { return (parts + threads - 1) / threads * others; };
  const int64_t by_panels = largest(panels, tiles), by_tiles = largest(tiles, panels);
  return by_panels < by_tiles || (by_panels == by_tiles && task.pixels < task.out_channels);
}

}  // namespace

void share_pointwise(const PointwiseTask& all, int threads) {
  const int64_t rows = pointwise_rows();
  const int64_t tiles = (all.pixels + rows - 1) / rows;
  if (shares_panels(all, tiles, threads)) {
    for_shares(threads, all.end_panel - all.first_panel, [&](int64_t begin, int64_t end, int) {
      PointwiseTask task = all;
      task.first_panel = all.first_panel + begin;
      task.end_panel = all.first_panel + end;
      run_pointwise(task);
    });
    return;
  }
  for_shares(threads, tiles, [&](int64_t begin, int64_t end, int) {
    const int64_t first = begin * rows;
    PointwiseTask task = all;
    task.x += first * all.x_stride;
    task.y += first * all.out_channels;
    if (task.residual) task.residual += first * all.out_channels;
    task.pixels = std::min(end * rows, all.pixels) - first;
    run_pointwise(task);
  });
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

#include "backends/cpu/simd/conv/pointwise_conv_loops.h"

#include <algorithm>
#include <cmath>

#include "backends/cpu/machine/cache_sizes.h"
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
// Of a panel. Beside its vectors of weights and a factor the sums of a tile fill 15 of 16 registers, or 29 of 32. Few
// rows and many vectors: rows that lie a multiple of 4 KiB apart share a set of the first cache, which has eight ways.
constexpr int kVectors = HWY_TARGET == HWY_AVX3 ? 4 : 2;
constexpr int kRows = 6;
// Of a tile with at most half a panel, which would wait for its sums.
constexpr int kNarrow = kVectors / 2;
constexpr int kNarrowRows = 12;
// Weights beyond this come from memory, and are fetched ahead.
constexpr int64_t kNearWeights = int64_t{128} * 1024;
// So many steps before a panel is multiplied it is fetched into the first cache.
constexpr int64_t kStepsAhead = 16;
// The same where it comes from memory, and meets one tile of rows.
constexpr int64_t kFarStepsAhead = 32;
// Up to so many rows weights from far away are read in the order in which they lie there.
constexpr int64_t kStreamedRows = 32;

HWY_INLINE int64_t lanes_of_target() { return static_cast<int64_t>(hn::Lanes(D())); }
int64_t panel_width_of_target() { return kVectors * lanes_of_target(); }
int64_t vector_width_of_target() { return lanes_of_target(); }

// Floats that the second cache has room for.
int64_t near_elements() {
  constexpr size_t kUsual = size_t{512} * 1024;
  static const size_t kBytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE, kUsual);
  return static_cast<int64_t>(kBytes / sizeof(float));
}

// Input channels of a panel that is read from the second cache for every tile of rows: with the one that is multiplied
// next and a block of pixels it fits there. Sums come from memory and go there once for so many.
int64_t deepest_panel() {
  constexpr int64_t kLeast = 256, kMost = 768, kShare = 5;
  return std::clamp(near_elements() / kShare / panel_width_of_target(), kLeast, kMost);
}

// Elements of a block of pixels, which is read once for each panel.
int64_t elements_of_block() { return near_elements() * 3 / 8; }

// Some input channels of all pixels of a block with one panel.
struct Product {
  const float* x;
  int64_t x_stride;
  const float* panel;
  const float* bias;
  ConvResiduals residuals;
  float* y;
  int64_t y_stride, residual_stride;
  int64_t depth;
  bool is_first;  // of the blocks of input channels
  bool is_last;
  std::span<const ConvStep> steps;
  int64_t columns;
  int64_t ahead;  // of this panel, for the first cache
  // What is multiplied next is fetched meanwhile, for the second cache: with each row and in each step so many bytes of
  // it.
  const char* next;
  int64_t next_of_row, next_step;
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
template <bool kWhole>
HWY_NOINLINE void finish_rows(const Product& product, int64_t first, int rows, int vectors) {
  const D d;
  float* const y = product.y + first * product.y_stride;
  const ConvResiduals residuals = product.residuals + first * product.residual_stride;
  for (const ConvStep& step : product.steps) {
    const float* const from = residuals.of(step);
    apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
      for (int r = 0; r < rows; ++r) {
        float* const row = y + r * product.y_stride;
        for (int v = 0; v < vectors; ++v) {
          const auto residual = [&]() HWY_ATTR {
            return load_columns<kWhole>(from + r * product.residual_stride, product.columns, v);
          };
          const V sum = load_columns<kWhole>(row, product.columns, v);
          store_columns<kWhole>(f(sum, residual), row, product.columns, v);
        }
      }
    });
  }
}

// Into the second cache: what is multiplied now is in the first one.
HWY_INLINE void fetch(const char* line) { __builtin_prefetch(line, /*for reading*/ 0, /*second cache*/ 2); }

// With a panel of `kUsed` vectors; `kFetches`: lines of what is multiplied next in every so many steps. Of its own, so
// that its sums stay in registers: inside its callers those of few rows went through memory in each step.
template <int kCount, int kUsed, bool kWhole, bool kFetches>
HWY_NOINLINE void multiply_rows(const Product& product, int64_t row) {
  const D d;
  const int64_t lanes = lanes_of_target();
  // Stores might change what lies in memory.
  const int64_t x_stride = product.x_stride, y_stride = product.y_stride;
  const int64_t columns = product.columns;
  float* const y = product.y + row * y_stride;
  V sums[kCount][kUsed];
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kUsed; ++v) {
      sums[r][v] = product.is_first ? hn::LoadU(d, product.bias + v * lanes)
                                    : load_columns<kWhole>(y + r * y_stride, columns, v);
    }
  }
  const float* x = product.x + row * x_stride;
  const float* panel = product.panel;
  const int64_t ahead = product.ahead, next_step = product.next_step;
  [[maybe_unused]] const char* next = product.next + row * product.next_of_row;
  const int64_t depth = product.depth;
  for (int64_t k = 0; k < depth; ++k, panel += kUsed * lanes) {
    V weights[kUsed];
#pragma GCC unroll 4
    for (int v = 0; v < kUsed; ++v) {
      weights[v] = hn::LoadU(d, panel + v * lanes);
      keep_in_register(weights[v]);
      if constexpr (kUsed > 1) hwy::Prefetch(panel + ahead + v * lanes);
    }
    if constexpr (kFetches) {
      fetch(next);
      next += next_step;
    }
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const V factor = hn::Set(d, x[r * x_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kUsed; ++v) sums[r][v] = hn::MulAdd(factor, weights[v], sums[r][v]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kUsed; ++v) {
      store_columns<kWhole>(sums[r][v], y + r * y_stride, columns, v);
    }
  }
  if (product.is_last && !product.steps.empty()) finish_rows<kWhole>(product, row, kCount, kUsed);
}

template <int kUsed, bool kWhole, bool kFetches>
HWY_INLINE void multiply_some_rows(const Product& product, int64_t row, int64_t rows) {
  switch (rows) {
    case 1: return multiply_rows<1, kUsed, kWhole, kFetches>(product, row);
    case 2: return multiply_rows<2, kUsed, kWhole, kFetches>(product, row);
    case 3: return multiply_rows<3, kUsed, kWhole, kFetches>(product, row);
    case 4: return multiply_rows<4, kUsed, kWhole, kFetches>(product, row);
    case 5: return multiply_rows<5, kUsed, kWhole, kFetches>(product, row);
    default: return multiply_rows<kRows, kUsed, kWhole, kFetches>(product, row);
  }
}

// As few tiles as there can be, of about as many rows each: one or two rows alone would wait for each sum.
template <int kUsed, bool kWhole, bool kFetches>
HWY_NOINLINE void multiply_block(const Product& product, int64_t rows) {
  int64_t row = 0;
  if constexpr (kUsed <= kNarrow) {
    for (; row + kNarrowRows <= rows; row += kNarrowRows) {
      multiply_rows<kNarrowRows, kUsed, kWhole, kFetches>(product, row);
    }
  }
  const auto tiles = static_cast<uint32_t>((rows - row + kRows - 1) / kRows);
  for (uint32_t left = tiles; left > 0; --left) {
    const int64_t now = (static_cast<uint32_t>(rows - row) + left - 1) / left;
    multiply_some_rows<kUsed, kWhole, kFetches>(product, row, now);
    row += now;
  }
}

// The last panel has as few as there can be.
int64_t vectors_of(int64_t columns) {
  return std::min<int64_t>(kVectors, (columns + lanes_of_target() - 1) / lanes_of_target());
}

void pack(const float* weights, int64_t out_channels, int64_t in_channels, float* packed) {
  for (int64_t first = 0; first < out_channels; first += panel_width_of_target()) {
    const int64_t given = std::min(panel_width_of_target(), out_channels - first);
    const int64_t width = vectors_of(given) * lanes_of_target();
    if (given < width) std::fill_n(packed, in_channels * width, 0.0F);
    for (int64_t c = 0; c < given; ++c) {
      const float* from = weights + (first + c) * in_channels;
      for (int64_t k = 0; k < in_channels; ++k) packed[k * width + c] = from[k];
    }
    packed += in_channels * width;
  }
}

// Some pixels and input channels.
struct Block {
  int64_t row, rows;
  int64_t k, depth;
};

// Panel `p` from input channel `k` on.
const float* panel_at(const PointwiseTask& task, int64_t p, int64_t k) {
  const int64_t width = panel_width_of_target();
  const int64_t vectors = vectors_of(task.out_channels - p * width);
  return task.panels + p * task.in_channels * width + k * vectors * lanes_of_target();
}

// `next`: weights that are multiplied next, which are fetched meanwhile; null: none.
void multiply_panel(const PointwiseTask& task, const Block& block, int64_t p, const float* next) {
  const int64_t width = panel_width_of_target();
  const int64_t columns = std::min(width, task.out_channels - p * width);
  const int64_t vectors = vectors_of(columns);
  const float* const panel = panel_at(task, p, block.k);
  const int64_t tiles = (block.rows + kRows - 1) / kRows;
  const int64_t step_bytes = width * static_cast<int64_t>(sizeof(float));
  // A panel that meets one tile of rows is itself what must be fetched.
  const bool is_alone = tiles == 1, fetches = next && !is_alone;
  const Product product{.x = task.x + block.row * task.x_stride + block.k,
                        .x_stride = task.x_stride,
                        .panel = panel,
                        .bias = task.bias + p * width,
                        .residuals = task.residuals + (block.row * task.out_channels + p * width),
                        .y = task.y + block.row * task.y_stride + p * width,
                        .y_stride = task.y_stride,
                        .residual_stride = task.out_channels,
                        .depth = block.depth,
                        .is_first = block.k == 0,
                        .is_last = block.k + block.depth == task.in_channels,
                        .steps = task.steps,
                        .columns = columns,
                        .ahead = (is_alone ? kFarStepsAhead : kStepsAhead) * vectors * lanes_of_target(),
                        .next = reinterpret_cast<const char*>(fetches ? next : panel),
                        .next_of_row = fetches ? block.depth * step_bytes / block.rows : 0,
                        .next_step = fetches ? (step_bytes + tiles - 1) / tiles : 0};
  if (columns == width) {
    return fetches ? multiply_block<kVectors, true, true>(product, block.rows)
                   : multiply_block<kVectors, true, false>(product, block.rows);
  }
  switch (vectors) {
    case 1: return multiply_block<1, false, true>(product, block.rows);
    case 2: return multiply_block<2, false, true>(product, block.rows);
#if HWY_TARGET == HWY_AVX3
    case 3: return multiply_block<3, false, true>(product, block.rows);
    case 4: return multiply_block<4, false, true>(product, block.rows);
#endif
    default: return;
  }
}

// Those of a block's pixels that the task has of this panel.
void multiply_share(const PointwiseTask& task, Block block, int64_t p, const float* next) {
  const int64_t begin = p == task.first_panel ? std::max(block.row, task.first_pixel) : block.row;
  const int64_t all = block.row + block.rows;
  const int64_t end = p + 1 == task.end_panel ? std::min(all, task.end_pixel) : all;
  if (begin >= end) return;
  block.row = begin;
  block.rows = end - begin;
  multiply_panel(task, block, p, next);
}

// Panel after panel: few rows meet weights from far away in the order in which those lie there.
void stream_panels(const PointwiseTask& task, Block block, int64_t depth) {
  for (int64_t p = task.first_panel; p < task.end_panel; ++p) {
    for (block.k = 0; block.k < task.in_channels; block.k += depth) {
      block.depth = std::min(depth, task.in_channels - block.k);
      const bool is_last = block.k + block.depth == task.in_channels;
      const float* const next = !is_last                 ? panel_at(task, p, block.k + block.depth)
                                : p + 1 < task.end_panel ? panel_at(task, p + 1, 0)
                                                         : nullptr;
      multiply_share(task, block, p, next);
    }
  }
}

// Some input channels of all panels, so that rows stay in the caches.
void walk_panels(const PointwiseTask& task, Block block, int64_t depth, bool is_far) {
  for (block.k = 0; block.k < task.in_channels; block.k += depth) {
    block.depth = std::min(depth, task.in_channels - block.k);
    const bool is_last = block.k + block.depth == task.in_channels;
    for (int64_t p = task.first_panel; p < task.end_panel; ++p) {
      const float* next = nullptr;
      if (is_far && p + 1 < task.end_panel) next = panel_at(task, p + 1, block.k);
      if (is_far && p + 1 == task.end_panel && !is_last) next = panel_at(task, task.first_panel, block.k + block.depth);
      multiply_share(task, block, p, next);
    }
  }
}

// How many input channels and pixels are multiplied at a time.
struct Blocking {
  int64_t depth, rows;
};

// Weights are read once for each block of pixels, sums are stored and read again for each further block of input
// channels. Fewer channels at a time leave room for more pixels.
Blocking choose_blocking(const PointwiseTask& task) {
  constexpr int64_t kLeastDepth = 192, kFewestTiles = 8;
  const int64_t deepest = deepest_panel(), channels = task.in_channels;
  const int64_t most_turns = std::max<int64_t>(1, channels / kLeastDepth);
  Blocking best{};
  int64_t least = 0;
  for (int64_t turns = (channels + deepest - 1) / deepest; best.rows == 0 || turns <= most_turns; ++turns) {
    const int64_t depth = (channels + turns - 1) / turns;
    const int64_t most = std::max(elements_of_block() / (depth * kRows) + 1, kFewestTiles) * kRows;
    const int64_t blocks = (task.pixels + most - 1) / most;
    const int64_t numbers = blocks * channels + 2 * (turns - 1) * task.pixels;
    if (best.rows == 0 || numbers < least) {
      best = {depth, (task.pixels + blocks - 1) / blocks};
      least = numbers;
    }
    if (blocks == 1) break;
  }
  return best;
}

void run(const PointwiseTask& task) {
  const auto [depth, rows] = choose_blocking(task);
  const bool is_far = task.in_channels * task.out_channels > kNearWeights;
  for (int64_t row = 0; row < task.pixels; row += rows) {
    const Block block{.row = row, .rows = std::min(rows, task.pixels - row), .k = 0, .depth = 0};
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
HWY_EXPORT(vector_width_of_target);
HWY_EXPORT(pack);
HWY_EXPORT(run);

int64_t pointwise_panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width_of_target)(); }
int64_t pointwise_vector_width() { return HWY_DYNAMIC_DISPATCH(vector_width_of_target)(); }
int64_t pointwise_panels(int64_t out_channels) {
  return (out_channels + pointwise_panel_width() - 1) / pointwise_panel_width();
}

void pack_pointwise_weights(const float* weights, int64_t out_channels, int64_t in_channels, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack)(weights, out_channels, in_channels, packed);
}

namespace {

void run_pointwise(const PointwiseTask& task) { HWY_DYNAMIC_DISPATCH(run)(task); }

// The part of `whole` that the largest share has where shares are multiples of `unit`.
double largest_share(int64_t whole, int64_t unit, int threads) {
  const int64_t units = (whole + unit - 1) / unit, of_first = (units + threads - 1) / threads * unit;
  return static_cast<double>(std::min(of_first, whole)) / static_cast<double>(whole);
}

// Vectors of output channels, as a task: of a panel that belongs to two shares each has some pixels.
PointwiseTask part_of(const PointwiseTask& all, int64_t vectors, int64_t begin, int64_t end) {
  const int64_t of_panel = pointwise_panel_width() / pointwise_vector_width();
  const auto pixels_before = [&](int64_t vector, int64_t panel) {
    return all.pixels * (vector - panel * of_panel) / std::min(of_panel, vectors - panel * of_panel);
  };
  PointwiseTask task = all;
  task.first_panel = begin / of_panel;
  task.end_panel = (end - 1) / of_panel + 1;
  task.first_pixel = pixels_before(begin, task.first_panel);
  task.end_pixel = pixels_before(end, task.end_panel - 1);
  return task;
}

// Whether shares of output channels are more even than shares of pixels; where both are alike, fewer numbers are read
// by every thread. A panel that belongs to two shares is read for fewer pixels than make up for it, unless every panel
// is.
bool shares_channels(const PointwiseTask& task, int threads) {
  constexpr double kAlike = 0.02;
  constexpr int64_t kFewPixels = 96;
  const double by_channels = largest_share(task.out_channels, pointwise_vector_width(), threads);
  const double by_pixels = largest_share(task.pixels, 1, threads);
  if (std::abs(by_channels - by_pixels) >= kAlike) return by_channels < by_pixels;
  const bool has_whole_panels = task.out_channels % (threads * pointwise_panel_width()) == 0;
  return task.pixels < task.out_channels && (has_whole_panels || task.pixels <= kFewPixels);
}

}  // namespace

void share_pointwise(const PointwiseTask& given, int threads) {
  PointwiseTask all = given;
  if (all.y_stride == 0) all.y_stride = all.out_channels;
  if (shares_channels(all, threads)) {
    const int64_t vectors = (all.out_channels + pointwise_vector_width() - 1) / pointwise_vector_width();
    for_shares(threads, vectors,
               [&](int64_t begin, int64_t end, int) { run_pointwise(part_of(all, vectors, begin, end)); });
    return;
  }
  const int64_t panels = pointwise_panels(all.out_channels);
  for_shares(threads, all.pixels, [&](int64_t begin, int64_t end, int) {
    PointwiseTask task = all;
    task.end_panel = panels;
    task.x += begin * all.x_stride;
    task.y += begin * all.y_stride;
    task.residuals = all.residuals + begin * all.out_channels;
    task.pixels = task.end_pixel = end - begin;
    run_pointwise(task);
  });
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

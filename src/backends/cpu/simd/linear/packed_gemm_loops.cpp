#include "backends/cpu/simd/linear/packed_gemm_loops.h"

#include <algorithm>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/packed_gemm_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/micro_gemm-inl.h"
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
namespace {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
constexpr int kVectors = 2;  // of a panel of b
// With two vectors of sums for each row, two of b and a factor: 15 of 16 registers, or 27 of 32.
constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;
// Of a: a tile stays in the first cache while it meets all panels of b, which come from the second one.
constexpr int64_t kDepth = 256;
constexpr int64_t kColumns = 256;
constexpr int64_t kTiles = HWY_TARGET == HWY_AVX3 ? 8 : 16;  // of a that are packed at a time
// Between rows of a tile that is packed row by row: no power of two.
constexpr int64_t kRowStride = kDepth + 16;

HWY_INLINE int64_t lanes_of_target() { return static_cast<int64_t>(hn::Lanes(D())); }
HWY_INLINE int64_t width_of_panel() { return kVectors * lanes_of_target(); }

// How far apart what is read one after the other lies: in packed blocks, or in the factors themselves.
struct Strides {
  int64_t of_a;      // rows, or where all rows of a position lie together, positions
  int64_t of_panel;  // positions of the depth
};

// A tile of rows with a panel.
struct TileAndPanel {
  const float* a;
  const float* panel;
  Strides strides;
  int64_t depth;
  bool is_first, is_last;  // of the blocks of the depth
  int64_t row, column;     // in the task
  int64_t columns;         // of the panel that exist
};

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

HWY_INLINE V after_step(const GemmStep& step, V y, V other) {
  switch (step.kind) {
    case GemmStep::Kind::add:
    case GemmStep::Kind::add_row: return hn::Add(y, other);
    case GemmStep::Kind::multiply: return hn::Mul(y, other);
    // NaN is not below 0.
    case GemmStep::Kind::relu: return hn::IfThenZeroElse(hn::Lt(y, hn::Zero(D())), y);
  }
  return y;
}

template <int kCount, bool kWhole>
HWY_INLINE void finish_rows(const GemmTask& task, const TileAndPanel& tile, V (&sums)[kCount][kVectors]) {
  const D d;
  const V alpha = hn::Set(d, task.alpha);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Mul(sums[r][v], alpha);
  }
  for (const GemmStep& step : task.steps) {
    const bool is_row = step.kind == GemmStep::Kind::add_row;
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const float* from = step.from;
      if (from) from += tile.column + (is_row ? 0 : (tile.row + r) * task.y_stride);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const V other = from ? load_columns<kWhole>(from, tile.columns, v) : hn::Zero(d);
        sums[r][v] = after_step(step, sums[r][v], other);
      }
    }
  }
}

// kTurned: a holds all rows of a position of the depth together, else the depth of each row.
template <int kCount, bool kTurned, bool kWhole>
HWY_INLINE void multiply_rows(const GemmTask& task, const TileAndPanel& tile) {
  const D d;
  const int64_t lanes = lanes_of_target();
  float* const y = task.y + tile.row * task.y_stride + tile.column;
  V sums[kCount][kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = tile.is_first ? hn::Zero(d) : load_columns<kWhole>(y + r * task.y_stride, tile.columns, v);
    }
  }
  const float* a = tile.a;
  const float* panel = tile.panel;
  const Strides strides = tile.strides;
  for (int64_t k = 0; k < tile.depth; ++k, panel += strides.of_panel, a += kTurned ? strides.of_a : 1) {
    const V first = hn::LoadU(d, panel), second = hn::LoadU(d, panel + lanes);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const V factor = hn::Set(d, a[r * (kTurned ? 1 : strides.of_a)]);
      sums[r][0] = hn::MulAdd(factor, first, sums[r][0]);
      sums[r][1] = hn::MulAdd(factor, second, sums[r][1]);
    }
  }
  if (tile.is_last) finish_rows<kCount, kWhole>(task, tile, sums);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      store_columns<kWhole>(sums[r][v], y + r * task.y_stride, tile.columns, v);
    }
  }
}

template <bool kTurned, bool kWhole>
HWY_NOINLINE void multiply_tile(const GemmTask& task, TileAndPanel tile, int64_t rows) {
  if (rows >= kRows) return multiply_rows<kRows, kTurned, kWhole>(task, tile);
  const auto next = [&](int64_t done) {
    tile.a += done * (kTurned ? 1 : tile.strides.of_a);
    tile.row += done;
    return done;
  };
  for (; rows >= 4; rows -= next(4)) multiply_rows<4, kTurned, kWhole>(task, tile);
  for (; rows >= 2; rows -= next(2)) multiply_rows<2, kTurned, kWhole>(task, tile);
  for (; rows >= 1; rows -= next(1)) multiply_rows<1, kTurned, kWhole>(task, tile);
}

// Panels of b [depth, columns]: each one has its columns of every position of the depth.
void pack_b(const GemmOperand& b, int64_t k, int64_t depth, int64_t column, int64_t columns, float* panels) {
  const D d;
  const int64_t lanes = lanes_of_target(), width = width_of_panel();
  for (int64_t first = 0; first < columns; first += width, panels += depth * width) {
    const int64_t given = std::min(width, columns - first);
    if (b.transposed) {
      const float* from = b.data + (column + first) * b.stride + k;
      if (given < width) std::fill_n(panels, depth * width, 0.0F);
      for (int64_t c = 0; c < given; c += 4) {
        int64_t at = 0;
        for (; c + 4 <= given && at + 4 <= depth; at += 4) {
          transpose_4x4(from + c * b.stride + at, b.stride, panels + at * width + c, width);
        }
        for (; at < depth; ++at) {
          for (int64_t i = c; i < std::min(c + 4, given); ++i) panels[at * width + i] = from[i * b.stride + at];
        }
      }
      continue;
    }
    for (int64_t at = 0; at < depth; ++at) {
      const float* from = b.data + (k + at) * b.stride + column + first;
      float* const to = panels + at * width;
      for (int v = 0; v < kVectors; ++v) hn::StoreU(load_columns<false>(from, given, v), d, to + v * lanes);
    }
  }
}

// Tiles of a [rows, depth]. Turned: [tile, depth, kRows], else [tile, kRows, kRowStride]; of the last tile missing
// rows stay as they are, nobody reads them.
void pack_a(const GemmOperand& a, int64_t row, int64_t rows, int64_t k, int64_t depth, float* to) {
  if (!a.transposed) {
    for (int64_t r = 0; r < rows; ++r) std::copy_n(a.data + (row + r) * a.stride + k, depth, to + r * kRowStride);
    return;
  }
  const int64_t whole = rows / kRows, rest = rows % kRows;
  for (int64_t at = 0; at < depth; ++at) {
    const float* from = a.data + (k + at) * a.stride + row;
    for (int64_t tile = 0; tile < whole; ++tile) {
      std::copy_n(from + tile * kRows, kRows, to + (tile * kRowStride + at) * kRows);
    }
    std::copy_n(from + whole * kRows, rest, to + (whole * kRowStride + at) * kRows);
  }
}

void multiply_rows_of_panel(const GemmTask& task, const TileAndPanel& tile, int64_t rows) {
  const bool is_whole = tile.columns == width_of_panel();
  if (task.a.transposed) {
    is_whole ? multiply_tile<true, true>(task, tile, rows) : multiply_tile<true, false>(task, tile, rows);
  } else {
    is_whole ? multiply_tile<false, true>(task, tile, rows) : multiply_tile<false, false>(task, tile, rows);
  }
}

// Some packed rows of a with a packed block of b.
void multiply_rows_and_panels(const GemmTask& task, const float* a, const float* panels, TileAndPanel tile,
                              int64_t rows, int64_t columns) {
  const int64_t width = width_of_panel(), row = tile.row, column = tile.column;
  tile.strides = {task.a.transposed ? kRows : kRowStride, width};
  for (int64_t r = 0; r < rows; r += kRows) {
    tile.row = row + r;
    tile.a = a + r * kRowStride;
    for (int64_t c = 0; c < columns; c += width) {
      tile.column = column + c;
      tile.columns = std::min(width, columns - c);
      tile.panel = panels + c * tile.depth;
      multiply_rows_of_panel(task, tile, std::min<int64_t>(kRows, rows - r));
    }
  }
}

// Both factors as they lie, but for panels of b that are not whole, or whose rows are columns there.
void run_in_place(const GemmTask& task, float* panels) {
  const int64_t width = width_of_panel();
  const int64_t in_place = task.b.transposed ? 0 : task.columns / width * width;
  pack_b(task.b, 0, task.depth, in_place, task.columns - in_place, panels);
  TileAndPanel tile{};
  tile.depth = task.depth;
  tile.is_first = tile.is_last = true;
  for (tile.row = 0; tile.row < task.rows; tile.row += kRows) {
    tile.a = task.a.data + tile.row * (task.a.transposed ? 1 : task.a.stride);
    for (tile.column = 0; tile.column < task.columns; tile.column += width) {
      const bool is_packed = tile.column >= in_place;
      tile.columns = std::min(width, task.columns - tile.column);
      tile.panel = is_packed ? panels + (tile.column - in_place) * task.depth : task.b.data + tile.column;
      tile.strides = {task.a.stride, is_packed ? width : task.b.stride};
      multiply_rows_of_panel(task, tile, std::min<int64_t>(kRows, task.rows - tile.row));
    }
  }
}

int64_t tile_rows_of_target() { return kRows; }
int64_t tile_columns_of_target() { return width_of_panel(); }
int64_t scratch_size_of_target() { return kDepth * kColumns + kTiles * kRows * kRowStride; }

void run(const GemmTask& task, float* scratch) {
  if (task.in_place) return run_in_place(task, scratch);
  float* const panels = scratch;
  float* const a = scratch + kDepth * kColumns;
  const int64_t turns = (task.depth + kDepth - 1) / kDepth, depth = (task.depth + turns - 1) / turns;
  for (int64_t column = 0; column < task.columns; column += kColumns) {
    const int64_t columns = std::min(kColumns, task.columns - column);
    for (int64_t k = 0; k < task.depth; k += depth) {
      TileAndPanel tile{};
      tile.depth = std::min(depth, task.depth - k);
      tile.is_first = k == 0;
      tile.is_last = k + depth >= task.depth;
      pack_b(task.b, k, tile.depth, column, columns, panels);
      for (int64_t row = 0; row < task.rows; row += kTiles * kRows) {
        const int64_t rows = std::min(kTiles * kRows, task.rows - row);
        pack_a(task.a, row, rows, k, tile.depth, a);
        tile.row = row;
        tile.column = column;
        multiply_rows_and_panels(task, a, panels, tile, rows, columns);
      }
    }
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(tile_rows_of_target);
HWY_EXPORT(tile_columns_of_target);
HWY_EXPORT(scratch_size_of_target);
HWY_EXPORT(run);

// Do so many lines of memory, each `stride` floats behind the one before, find places in a first cache of 32 KiB and
// eight ways, and leave two of the ways to others? Lines whose distance is a multiple of 4 KiB all share one set.
bool fit_in_cache(int64_t lines, int64_t stride) {
  constexpr int64_t kSets = 64, kWays = 6, kLine = 16;
  const int64_t sets = stride % kLine == 0 ? kSets / std::gcd(stride / kLine, kSets) : kSets;
  return lines <= sets * kWays;
}

}  // namespace

bool is_better_in_place(const GemmOperand& a, const GemmOperand& b, int64_t depth, int64_t columns) {
  constexpr int64_t kDeep = 256, kMany = 16384;  // floats of b: 64 KiB
  if (depth > kDeep || depth * columns > kMany) return false;
  return (!a.transposed || fit_in_cache(depth, a.stride)) && (b.transposed || fit_in_cache(depth, b.stride));
}

int64_t gemm_tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_of_target)(); }
int64_t gemm_tile_columns() { return HWY_DYNAMIC_DISPATCH(tile_columns_of_target)(); }
int64_t gemm_scratch_size() { return HWY_DYNAMIC_DISPATCH(scratch_size_of_target)(); }

int64_t in_place_gemm_scratch_size(int64_t depth, int64_t columns) {
  const int64_t width = gemm_tile_columns();
  return depth * ((columns + width - 1) / width * width);
}
void run_gemm(const GemmTask& task, float* scratch) { HWY_DYNAMIC_DISPATCH(run)(task, scratch); }

}  // namespace autograph::simd
#endif  // HWY_ONCE

#include "backends/cpu/simd/linear/integer_loops.h"

#include <algorithm>
#include <cstring>

#include "autograph/op_def.h"
#include "backends/cpu/multiversion.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/integer_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/pair_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace {

// With two vectors of sums for each row, two of bytes, a factor and a product: 16 registers, or 28 of 32.
constexpr int kRows = HWY_TARGET == HWY_AVX3 ? 12 : 6;
// Of a panel, which stays in the first cache, and rows that stay in the second one while they meet all panels.
constexpr int64_t kMaxDepth = 1024;
constexpr int64_t kBlockRows = 96;

int64_t panel_width_of_target() { return pair_panel_width(); }
int64_t tile_rows_of_target() { return kRows; }

// Some rows and one panel, over a part of the depth.
struct Tile {
  const int16_t* rows;
  int64_t row_stride;
  const int32_t* row_sums;
  const int8_t* panel;
  int64_t pairs;
  bool is_first, is_last;  // of the parts
  const int32_t* zeros;
  int32_t* y;
  int64_t y_stride;
  int64_t columns;  // that exist
};

// Of a panel that is not whole the others come from nowhere.
template <bool kWhole>
HWY_INLINE PairV load_sums(const int32_t* from, int64_t columns, int v) {
  const PairD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (kWhole) return hn::LoadU(d, from + v * lanes);
  HWY_ALIGN int32_t buffer[HWY_MAX_BYTES / sizeof(int32_t)] = {};
  const int64_t count = std::clamp<int64_t>(columns - v * lanes, 0, lanes);
  std::copy_n(from + std::min(v * lanes, columns), count, buffer);
  return hn::Load(d, buffer);
}

template <bool kWhole>
HWY_INLINE void store_sums(PairV sums, int32_t* to, int64_t columns, int v) {
  const PairD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (kWhole) return hn::StoreU(sums, d, to + v * lanes);
  HWY_ALIGN int32_t buffer[HWY_MAX_BYTES / sizeof(int32_t)];
  hn::Store(sums, d, buffer);
  const int64_t count = std::clamp<int64_t>(columns - v * lanes, 0, lanes);
  std::copy_n(buffer, count, to + std::min(v * lanes, columns));
}

template <int kCount, bool kWhole>
HWY_INLINE void multiply_rows(const Tile& tile) {
  const PairD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  PairV sums[kCount][kPairVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) {
      sums[r][v] = tile.is_first ? hn::Zero(d) : load_sums<kWhole>(tile.y + r * tile.y_stride, tile.columns, v);
    }
  }
  add_pair_products<kCount>(tile.rows, tile.row_stride, tile.panel, tile.pairs, sums);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) {
      PairV sum = sums[r][v];
      if (tile.is_last) {
        sum = hn::Sub(sum, hn::Mul(hn::LoadU(d, tile.zeros + v * lanes), hn::Set(d, tile.row_sums[r])));
      }
      store_sums<kWhole>(sum, tile.y + r * tile.y_stride, tile.columns, v);
    }
  }
}

template <bool kWhole>
HWY_NOINLINE void multiply_panel(Tile tile, int64_t rows) {
  const auto next = [&](int64_t done) {
    tile.rows += done * tile.row_stride;
    tile.row_sums += done;
    tile.y += done * tile.y_stride;
    return done;
  };
  for (; rows >= kRows; rows -= next(kRows)) multiply_rows<kRows, kWhole>(tile);
  for (; rows >= 4; rows -= next(4)) multiply_rows<4, kWhole>(tile);
  for (; rows >= 2; rows -= next(2)) multiply_rows<2, kWhole>(tile);
  if (rows >= 1) multiply_rows<1, kWhole>(tile);
}

void multiply(const IntegerProductTask& task) {
  const int64_t width = pair_panel_width(), size = integer_row_size(task.depth);
  for (int64_t row = 0; row < task.count; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, task.count - row);
    for (int64_t k = 0; k < size; k += kMaxDepth) {
      const int64_t depth = std::min(kMaxDepth, size - k);
      for (int64_t column = 0; column < task.columns; column += width) {
        const int64_t columns = std::min(width, task.columns - column);
        const Tile tile{.rows = task.rows + row * size + k,
                        .row_stride = size,
                        .row_sums = task.row_sums + row,
                        .panel = task.panels + column * size + k * width,
                        .pairs = depth / 2,
                        .is_first = k == 0,
                        .is_last = k + depth == size,
                        .zeros = task.zeros + column,
                        .y = task.y + row * task.y_stride + column,
                        .y_stride = task.y_stride,
                        .columns = columns};
        columns == width ? multiply_panel<true>(tile, rows) : multiply_panel<false>(tile, rows);
      }
    }
  }
}

// Pairs of both rows to panels that are `step` bytes apart; `flip` turns bits round.
void interleave(const uint8_t* first, const uint8_t* second, uint8_t flip, int64_t count, int64_t step, uint8_t* to) {
  const int64_t width = pair_panel_width();
  for (; count > 0; count -= width, first += width, second += width, to += step) {
    int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    constexpr int64_t kBlock = 16;
    const hn::FixedTag<uint8_t, kBlock> d;
    for (; j + kBlock <= std::min(count, width); j += kBlock) {
      const auto a = hn::Xor(hn::LoadU(d, first + j), hn::Set(d, flip));
      const auto b = hn::Xor(hn::LoadU(d, second + j), hn::Set(d, flip));
      hn::StoreU(hn::InterleaveLower(d, a, b), d, to + 2 * j);
      hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + 2 * j + kBlock);
    }
#endif
    for (; j < std::min(count, width); ++j) {
      to[2 * j] = first[j] ^ flip;
      to[2 * j + 1] = second[j] ^ flip;
    }
    std::memset(to + 2 * j, 0, static_cast<size_t>(2 * (width - j)));
  }
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

// The compiler makes vector instructions of these loops.
template <class Byte>
inline __attribute__((always_inline)) int32_t widen(const Byte* bytes, int32_t zero, int64_t depth, int16_t* row) {
  int32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t k = 0; k < depth; ++k) {
    const int32_t number = bytes[k] - zero;
    row[k] = static_cast<int16_t>(number);
    sum += number;
  }
  return sum;
}

AG_MULTIVERSION int32_t widen_unsigned(const uint8_t* bytes, int32_t zero, int64_t depth, int16_t* row) {
  return widen(bytes, zero, depth, row);
}

AG_MULTIVERSION int32_t widen_signed(const int8_t* bytes, int32_t zero, int64_t depth, int16_t* row) {
  return widen(bytes, zero, depth, row);
}

HWY_EXPORT(panel_width_of_target);
HWY_EXPORT(tile_rows_of_target);
HWY_EXPORT(multiply);
HWY_EXPORT(interleave);

}  // namespace

int64_t integer_panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width_of_target)(); }
int64_t integer_tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_of_target)(); }

int32_t widen_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, int16_t* row) {
  if (depth % 2 != 0) row[depth] = 0;
  return is_signed ? widen_signed(reinterpret_cast<const int8_t*>(bytes), zero, depth, row)
                   : widen_unsigned(bytes, zero, depth, row);
}

void pack_integer_rows(const ByteMatrix& two_rows, int64_t count, int64_t k, int64_t depth, int8_t* panels) {
  // What is behind the depth is multiplied with 0.
  const uint8_t* second = k + 1 < depth ? two_rows.bytes + two_rows.row_stride : two_rows.bytes;
  HWY_DYNAMIC_DISPATCH(interleave)
  (two_rows.bytes, second, two_rows.is_signed ? 0 : kUnsignedShift, count, integer_panel_bytes(depth),
   reinterpret_cast<uint8_t*>(panels) + k * integer_panel_width());
}

void multiply_integers(const IntegerProductTask& task) { HWY_DYNAMIC_DISPATCH(multiply)(task); }

std::vector<KernelVariant> integer_variants(const KernelCall& call) {
  constexpr double kStartUs = 3;
  constexpr double kFlopsPerUsAndThread = 100e3;
  constexpr double kBytesPerUs = 10e3;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  const double us = kStartUs + cost.flops / (kFlopsPerUsAndThread * call.threads) + cost.bytes / kBytesPerUs;
  return {{.name = "", .inputs = {}, .outputs = {}, .cost_us = us}};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

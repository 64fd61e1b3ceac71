#include "backends/cpu/simd/linear/integer_loops.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/quantize/integer_cost.h"
#include "backends/cpu/simd/isa.h"
#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/integer_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/byte_products-inl.h"

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
int64_t group_of_target() {
  return with_byte_layout([]<class Layout>(Layout) HWY_ATTR { return Layout::kGroup; });
}

// Rows of quads are bytes; rows of pairs have 16 bits.
template <class Layout>
constexpr int64_t row_bytes(int64_t depth) {
  return (depth + Layout::kGroup - 1) / Layout::kGroup * 4;
}

// Before the bytes of a panel stand the sums of its columns, where rows keep their zero point.
template <class Layout>
HWY_INLINE int64_t head_bytes() {
  return std::is_same_v<Layout, Quads> ? pair_panel_width() * static_cast<int64_t>(sizeof(int32_t)) : 0;
}

template <class Layout>
HWY_INLINE int64_t panel_bytes(int64_t depth) {
  return head_bytes<Layout>() + row_bytes<Layout>(depth) / 4 * Layout::kGroup * pair_panel_width();
}

int64_t row_bytes_of_target(int64_t depth) {
  return with_byte_layout([&]<class Layout>(Layout) HWY_ATTR { return row_bytes<Layout>(depth); });
}
int64_t panel_bytes_of_target(int64_t depth) {
  return with_byte_layout([&]<class Layout>(Layout) HWY_ATTR { return panel_bytes<Layout>(depth); });
}

// Some rows and one panel, over a part of the depth.
template <class Layout>
struct Tile {
  const char* rows;
  int64_t row_stride;  // in bytes
  const IntegerRow* terms;
  const int8_t* panel;
  int64_t groups;
  const int32_t* column_sums;  // of quads
  bool is_first, is_last;      // of the parts
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

template <int kCount>
HWY_INLINE void add_products(const Tile<Pairs>& tile, PairV (&sums)[kCount][kPairVectors]) {
  constexpr auto kNumber = static_cast<int64_t>(sizeof(int16_t));
  add_pair_products<kCount>(reinterpret_cast<const int16_t*>(tile.rows), tile.row_stride / kNumber, tile.panel,
                            tile.groups, sums);
}

#if AG_MAY_HAVE_VNNI
template <int kCount>
HWY_INLINE void add_products(const Tile<Quads>& tile, PairV (&sums)[kCount][kPairVectors]) {
  add_quad_products<kCount>(reinterpret_cast<const uint8_t*>(tile.rows), tile.row_stride, tile.panel, tile.groups,
                            sums);
}
#endif

template <int kCount, bool kWhole, class Layout>
HWY_INLINE void multiply_rows(const Tile<Layout>& tile) {
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
  add_products<kCount>(tile, sums);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) {
      PairV sum = sums[r][v];
      if (tile.is_last) {
        sum = hn::Sub(sum, hn::Mul(hn::LoadU(d, tile.zeros + v * lanes), hn::Set(d, tile.terms[r].sum)));
        if constexpr (std::is_same_v<Layout, Quads>) {
          sum = hn::Sub(sum, hn::Mul(hn::LoadU(d, tile.column_sums + v * lanes), hn::Set(d, tile.terms[r].zero)));
        }
      }
      store_sums<kWhole>(sum, tile.y + r * tile.y_stride, tile.columns, v);
    }
  }
}

template <bool kWhole, class Layout>
HWY_NOINLINE void multiply_panel(Tile<Layout> tile, int64_t rows) {
  const auto next = [&](int64_t done) {
    tile.rows += done * tile.row_stride;
    tile.terms += done;
    tile.y += done * tile.y_stride;
    return done;
  };
  for (; rows >= kRows; rows -= next(kRows)) multiply_rows<kRows, kWhole>(tile);
  for (; rows >= 4; rows -= next(4)) multiply_rows<4, kWhole>(tile);
  for (; rows >= 2; rows -= next(2)) multiply_rows<2, kWhole>(tile);
  if (rows >= 1) multiply_rows<1, kWhole>(tile);
}

template <class Layout>
void multiply_of(const IntegerProductTask& task) {
  const int64_t width = pair_panel_width(), row_size = row_bytes<Layout>(task.depth);
  const int64_t groups = row_size / 4, panel_size = panel_bytes<Layout>(task.depth);
  constexpr int64_t kMaxGroups = kMaxDepth / Layout::kGroup;
  for (int64_t row = 0; row < task.count; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, task.count - row);
    for (int64_t g = 0; g < groups; g += kMaxGroups) {
      const int64_t count = std::min(kMaxGroups, groups - g);
      for (int64_t column = 0; column < task.columns; column += width) {
        const int64_t columns = std::min(width, task.columns - column);
        const int8_t* const panel = task.panels + column / width * panel_size;
        const Tile<Layout> tile{.rows = static_cast<const char*>(task.rows) + row * row_size + 4 * g,
                                .row_stride = row_size,
                                .terms = task.terms + row,
                                .panel = panel + head_bytes<Layout>() + g * Layout::kGroup * width,
                                .groups = count,
                                .column_sums = reinterpret_cast<const int32_t*>(panel),
                                .is_first = g == 0,
                                .is_last = g + count == groups,
                                .zeros = task.zeros + column,
                                .y = task.y + row * task.y_stride + column,
                                .y_stride = task.y_stride,
                                .columns = columns};
        columns == width ? multiply_panel<true>(tile, rows) : multiply_panel<false>(tile, rows);
      }
    }
  }
}

void multiply(const IntegerProductTask& task) {
  with_byte_layout([&]<class Layout>(Layout) HWY_ATTR { multiply_of<Layout>(task); });
}

// What pack_integer_rows() packs.
struct RowGroup {
  std::array<const uint8_t*, Quads::kGroup> rows;
  uint8_t flip;  // bits that are turned round
};

#if HWY_TARGET != HWY_SCALAR

using BlockD = hn::FixedTag<uint8_t, 16>;
using BlockV = hn::Vec<BlockD>;

HWY_INLINE BlockV load_block(const RowGroup& group, size_t row, int64_t j) {
  const BlockD d;
  return hn::Xor(hn::LoadU(d, group.rows[row] + j), hn::Set(d, group.flip));
}

// Columns [j, j + 16) of rows a and b, those of a first.
struct Interleaved {
  BlockV lower, upper;
};
HWY_INLINE Interleaved interleave_rows(const RowGroup& group, size_t a, int64_t j) {
  const BlockV first = load_block(group, a, j), second = load_block(group, a + 1, j);
  return {hn::InterleaveLower(BlockD(), first, second), hn::InterleaveUpper(BlockD(), first, second)};
}

HWY_INLINE void interleave_block(Pairs, const RowGroup& group, int64_t j, uint8_t* to) {
  const auto [lower, upper] = interleave_rows(group, 0, j);
  hn::StoreU(lower, BlockD(), to);
  hn::StoreU(upper, BlockD(), to + 16);
}

#if AG_MAY_HAVE_VNNI
HWY_INLINE void interleave_block(Quads, const RowGroup& group, int64_t j, uint8_t* to) {
  const hn::Repartition<uint16_t, BlockD> d;
  const auto a = interleave_rows(group, 0, j), b = interleave_rows(group, 2, j);
  auto* const at = reinterpret_cast<uint16_t*>(to);
  hn::StoreU(hn::InterleaveLower(d, hn::BitCast(d, a.lower), hn::BitCast(d, b.lower)), d, at);
  hn::StoreU(hn::InterleaveUpper(d, hn::BitCast(d, a.lower), hn::BitCast(d, b.lower)), d, at + 8);
  hn::StoreU(hn::InterleaveLower(d, hn::BitCast(d, a.upper), hn::BitCast(d, b.upper)), d, at + 16);
  hn::StoreU(hn::InterleaveUpper(d, hn::BitCast(d, a.upper), hn::BitCast(d, b.upper)), d, at + 24);
}
#endif

#endif

// Groups of all rows to panels that are `step` bytes apart.
template <class Layout>
void interleave_of(RowGroup group, int64_t count, int64_t step, uint8_t* to) {
  constexpr int64_t kGroup = Layout::kGroup;
  const int64_t width = pair_panel_width();
  for (; count > 0; count -= width, to += step) {
    const int64_t columns = std::min(count, width);
    int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
    for (; j + 16 <= columns; j += 16) interleave_block(Layout(), group, j, to + kGroup * j);
#endif
    for (; j < columns; ++j) {
      for (int64_t k = 0; k < kGroup; ++k) to[kGroup * j + k] = group.rows[static_cast<size_t>(k)][j] ^ group.flip;
    }
    std::memset(to + kGroup * j, 0, static_cast<size_t>(kGroup * (width - j)));
    for (const uint8_t*& row : group.rows) row += width;
  }
}

void pack_group(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, int8_t* panels) {
  with_byte_layout([&]<class Layout>(Layout) HWY_ATTR {
    RowGroup group{.rows = {}, .flip = static_cast<uint8_t>(rows.is_signed ? 0 : kUnsignedShift)};
    // What is behind the depth is multiplied with 0.
    for (int64_t i = 0; i < Quads::kGroup; ++i) {
      group.rows[static_cast<size_t>(i)] = rows.bytes + (k + i < depth ? i : 0) * rows.row_stride;
    }
    auto* const to = reinterpret_cast<uint8_t*>(panels) + head_bytes<Layout>() + k * pair_panel_width();
    interleave_of<Layout>(group, count, panel_bytes<Layout>(depth), to);
  });
}

#if AG_MAY_HAVE_VNNI
// With the zeros behind the depth, which rows have there, in the place of ones.
void sum_columns(int64_t count, int64_t depth, int8_t* panels) {
  const PairD d;
  constexpr int64_t kGroup = Quads::kGroup, kVectorBytes = kGroup * HWY_LANES(int32_t);
  const auto ones_of = [](int64_t rest) {
    return static_cast<int32_t>(rest >= kGroup ? 0x01010101U : 0x01010101U >> (8 * (kGroup - rest)));
  };
  for (; count > 0; count -= pair_panel_width(), panels += panel_bytes<Quads>(depth)) {
    PairV sums[kPairVectors] = {hn::Zero(d), hn::Zero(d)};
    const int8_t* at = panels + head_bytes<Quads>();
    for (int64_t k = 0; k < depth; k += kGroup, at += kPairVectors * kVectorBytes) {
      const PairV ones = hn::Set(d, ones_of(depth - k));
      sums[0] = QuadDots::add(sums[0], ones, QuadDots::load(at));
      sums[1] = QuadDots::add(sums[1], ones, QuadDots::load(at + kVectorBytes));
    }
    auto* const head = reinterpret_cast<int32_t*>(panels);
    hn::StoreU(sums[0], d, head);
    hn::StoreU(sums[1], d, head + hn::Lanes(d));
  }
}

IntegerRow prepare_quads(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, uint8_t* row) {
  const PairD d;
  const hn::Repartition<uint8_t, PairD> d8;
  constexpr auto kLanes = static_cast<int64_t>(HWY_LANES(uint8_t));
  const int32_t shift = is_signed ? kUnsignedShift : 0;
  const auto flip = hn::Set(d8, static_cast<uint8_t>(shift));
  const PairV ones = hn::Set(d, 0x01010101);
  PairV sum = hn::Zero(d);
  for (int64_t k = 0; k < depth; k += kLanes) {
    const auto there = hn::FirstN(d8, static_cast<size_t>(std::min(depth - k, kLanes)));
    const auto flipped = hn::IfThenElseZero(there, hn::Xor(hn::MaskedLoad(there, d8, bytes + k), flip));
    hn::BlendedStore(flipped, hn::FirstN(d8, static_cast<size_t>(row_bytes<Quads>(depth) - k)), d8, row + k);
    sum = QuadDots::add(sum, hn::BitCast(d, flipped), ones);
  }
  const int32_t total = hn::GetLane(hn::SumOfLanes(d, sum));
  return {static_cast<int32_t>(total - depth * (zero + shift)), zero + shift};
}

#else

IntegerRow prepare_quads(const uint8_t*, bool, int32_t, int64_t, uint8_t*) {
  AG_CHECK(false, "no byte products on this CPU");
}

#endif

void finish_panels([[maybe_unused]] int64_t count, [[maybe_unused]] int64_t depth, [[maybe_unused]] int8_t* panels) {
#if AG_MAY_HAVE_VNNI
  if (has_wide_vnni()) sum_columns(count, depth, panels);
#endif
}

}  // namespace
}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

constexpr int64_t kPairGroup = 2;  // without VNNI

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
HWY_EXPORT(group_of_target);
HWY_EXPORT(row_bytes_of_target);
HWY_EXPORT(panel_bytes_of_target);
HWY_EXPORT(multiply);
HWY_EXPORT(pack_group);
HWY_EXPORT(finish_panels);
HWY_EXPORT(prepare_quads);

IntegerRow prepare_pairs(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, int16_t* row) {
  if (depth % 2 != 0) row[depth] = 0;
  const int32_t sum = is_signed ? widen_signed(reinterpret_cast<const int8_t*>(bytes), zero, depth, row)
                                : widen_unsigned(bytes, zero, depth, row);
  return {sum, 0};
}

}  // namespace

int64_t integer_panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width_of_target)(); }
int64_t integer_tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_of_target)(); }
int64_t integer_group() { return HWY_DYNAMIC_DISPATCH(group_of_target)(); }
int64_t integer_row_bytes(int64_t depth) { return HWY_DYNAMIC_DISPATCH(row_bytes_of_target)(depth); }
int64_t integer_panel_bytes(int64_t depth) { return HWY_DYNAMIC_DISPATCH(panel_bytes_of_target)(depth); }

IntegerRow prepare_integer_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, void* row) {
  if (integer_group() == kPairGroup) return prepare_pairs(bytes, is_signed, zero, depth, static_cast<int16_t*>(row));
  return HWY_DYNAMIC_DISPATCH(prepare_quads)(bytes, is_signed, zero, depth, static_cast<uint8_t*>(row));
}

void pack_integer_rows(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, int8_t* panels) {
  HWY_DYNAMIC_DISPATCH(pack_group)(rows, count, k, depth, panels);
}

void finish_integer_panels(int64_t count, int64_t depth, int8_t* panels) {
  HWY_DYNAMIC_DISPATCH(finish_panels)(count, depth, panels);
}

void multiply_integers(const IntegerProductTask& task) { HWY_DYNAMIC_DISPATCH(multiply)(task); }

std::vector<KernelVariant> integer_variants(const KernelCall& call) {
  return integer_kernel_variants(call, integer_group() == kPairGroup ? 100e3 : 400e3);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

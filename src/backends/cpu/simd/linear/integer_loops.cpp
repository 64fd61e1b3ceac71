#include "backends/cpu/simd/linear/integer_loops.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "backends/cpu/quantize/integer_cost.h"
#include "backends/cpu/simd/isa.h"
#include "backends/cpu/threads/parallel.h"
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

// Runs `body` for the layout of this CPU for such panels.
template <class Body>
HWY_INLINE auto with_panel_layout([[maybe_unused]] PackedWhen packed, const Body& body) {
#if AG_HAS_SORTED_PANELS
  if (packed == PackedWhen::once) return body(Sorted());
#endif
  return with_byte_layout(body);
}

int64_t group_of_target(PackedWhen packed) {
  return with_panel_layout(packed, []<class Layout>(Layout) HWY_ATTR { return Layout::kGroup; });
}

template <class Layout>
constexpr int64_t num_groups(int64_t depth) {
  return (depth + Layout::kGroup - 1) / Layout::kGroup;
}

// Rows of quads are bytes; rows of pairs have 16 bits; sorted panels want both.
template <class Layout>
constexpr int64_t row_bytes(int64_t depth) {
  constexpr int64_t kGroupBytes = std::is_same_v<Layout, Sorted> ? 3 * Sorted::kGroup : 4;
  return num_groups<Layout>(depth) * kGroupBytes;
}

// Do rows keep their zero point, and heads of panels have the sums of their columns?
template <class Layout>
constexpr bool kKeepsZero = !std::is_same_v<Layout, Pairs>;

// What stands before the bytes of a panel: the sums of its columns; of a sorted one for each part of the depth the
// number of groups that fit, and the order of all.
template <class Layout>
HWY_INLINE int64_t head_bytes([[maybe_unused]] int64_t depth) {
  const int64_t sums = kKeepsZero<Layout> ? pair_panel_width() * static_cast<int64_t>(sizeof(int32_t)) : 0;
  if constexpr (std::is_same_v<Layout, Sorted>) {
    const int64_t parts = (depth + kMaxDepth - 1) / kMaxDepth;
    return sums + (parts * static_cast<int64_t>(sizeof(int32_t)) + num_groups<Sorted>(depth) + 63) / 64 * 64;
  }
  return sums;
}

template <class Layout>
HWY_INLINE int64_t panel_bytes(int64_t depth) {
  return head_bytes<Layout>(depth) + num_groups<Layout>(depth) * Layout::kGroup * pair_panel_width();
}

int64_t row_bytes_of_target(int64_t depth, PackedWhen packed) {
  return with_panel_layout(packed, [&]<class Layout>(Layout) HWY_ATTR { return row_bytes<Layout>(depth); });
}
int64_t panel_bytes_of_target(int64_t depth, PackedWhen packed) {
  return with_panel_layout(packed, [&]<class Layout>(Layout) HWY_ATTR { return panel_bytes<Layout>(depth); });
}

// Some rows and one panel, over a part of the depth.
template <class Layout>
struct Tile {
  const char* rows;
  int64_t row_stride;  // in bytes
  const IntegerRow* terms;
  const int8_t* panel;
  int64_t groups;
  const int32_t* column_sums;  // where rows keep their zero point
  int64_t depth;               // of all parts
  int64_t first_group;         // of this part
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

#if AG_HAS_SORTED_PANELS
template <int kCount>
HWY_INLINE void add_products(const Tile<Sorted>& tile, PairV (&sums)[kCount][kPairVectors]) {
  const int64_t parts = (tile.depth + kMaxDepth - 1) / kMaxDepth, part = tile.first_group * Sorted::kGroup / kMaxDepth;
  const int32_t* const fits = tile.column_sums + pair_panel_width();
  const auto* const order = reinterpret_cast<const uint8_t*>(fits + parts) + tile.first_group;
  // Numbers stand behind all bytes of a row.
  const char* const numbers =
      tile.rows + num_groups<Sorted>(tile.depth) * Sorted::kGroup + tile.first_group * Sorted::kGroup;
  add_sorted_products<kCount>(reinterpret_cast<const uint8_t*>(tile.rows), reinterpret_cast<const int16_t*>(numbers),
                              tile.row_stride, {tile.panel, order, fits[part], tile.groups}, sums);
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
        if (tile.zeros) {
          sum = hn::Sub(sum, hn::Mul(hn::LoadU(d, tile.zeros + v * lanes), hn::Set(d, tile.terms[r].sum)));
        }
        // Activations behind a relu have a zero point of 0.
        if (kKeepsZero<Layout> && tile.terms[r].zero != 0) {
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
  const int64_t groups = num_groups<Layout>(task.depth), panel_size = panel_bytes<Layout>(task.depth);
  constexpr int64_t kStep = row_bytes<Layout>(Layout::kGroup) / (std::is_same_v<Layout, Sorted> ? 3 : 1);
  constexpr int64_t kMaxGroups = kMaxDepth / Layout::kGroup;
  for (int64_t row = 0; row < task.count; row += kBlockRows) {
    const int64_t rows = std::min(kBlockRows, task.count - row);
    for (int64_t g = 0; g < groups; g += kMaxGroups) {
      const int64_t count = std::min(kMaxGroups, groups - g);
      for (int64_t column = 0; column < task.columns; column += width) {
        const int64_t columns = std::min(width, task.columns - column);
        const int8_t* const panel = task.panels + column / width * panel_size;
        const Tile<Layout> tile{.rows = static_cast<const char*>(task.rows) + row * row_size + kStep * g,
                                .row_stride = row_size,
                                .terms = task.terms + row,
                                .panel = panel + head_bytes<Layout>(task.depth) + g * Layout::kGroup * width,
                                .groups = count,
                                .column_sums = reinterpret_cast<const int32_t*>(panel),
                                .depth = task.depth,
                                .first_group = g,
                                .is_first = g == 0,
                                .is_last = g + count == groups,
                                .zeros = task.zeros ? task.zeros + column : nullptr,
                                .y = task.y + row * task.y_stride + column,
                                .y_stride = task.y_stride,
                                .columns = columns};
        columns == width ? multiply_panel<true>(tile, rows) : multiply_panel<false>(tile, rows);
      }
    }
  }
}

void multiply(const IntegerProductTask& task) {
  with_panel_layout(task.packed, [&]<class Layout>(Layout) HWY_ATTR { multiply_of<Layout>(task); });
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

#if AG_HAS_SORTED_PANELS || AG_MAY_HAVE_VNNI
template <class Layout>
HWY_INLINE void interleave_block(Layout, const RowGroup& group, int64_t j, uint8_t* to) {
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

void pack_group(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, PackedWhen packed, int8_t* panels) {
  with_panel_layout(packed, [&]<class Layout>(Layout) HWY_ATTR {
    RowGroup group{.rows = {}, .flip = static_cast<uint8_t>(rows.is_signed ? 0 : kUnsignedShift)};
    // What is behind the depth is multiplied with 0.
    for (int64_t i = 0; i < Quads::kGroup; ++i) {
      group.rows[static_cast<size_t>(i)] = rows.bytes + (k + i < depth ? i : 0) * rows.row_stride;
    }
    auto* const to = reinterpret_cast<uint8_t*>(panels) + head_bytes<Layout>(depth) + k * pair_panel_width();
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
    const int8_t* at = panels + head_bytes<Quads>(depth);
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

#endif

#if AG_HAS_SORTED_PANELS

// Do products of two neighbours of any bytes with these of each column, two and two, fit 16 bits?
bool fits_sixteen_bits(const int8_t* group, int64_t columns) {
  constexpr int kMost = 128;  // 255 times it fits
  for (int64_t i = 0; i < columns * Sorted::kGroup; i += 2) {
    const int a = group[i], b = group[i + 1];
    if (std::max(a, 0) + std::max(b, 0) > kMost || std::min(a, 0) + std::min(b, 0) < -kMost) return false;
  }
  return true;
}

// A group of four for each column becomes pairs of all columns and pairs of all columns.
void store_as_pairs(const int8_t* group, int64_t columns, int8_t* to) {
  for (int64_t half = 0; half < 2; ++half) {
    for (int64_t column = 0; column < columns; ++column, to += 2) {
      std::copy_n(group + column * Sorted::kGroup + 2 * half, 2, to);
    }
  }
}

void sort_panel(int64_t depth, int8_t* panel) {
  const int64_t width = pair_panel_width(), size = Sorted::kGroup * width, groups = num_groups<Sorted>(depth);
  constexpr int64_t kMaxGroups = kMaxDepth / Sorted::kGroup;
  static_assert(kMaxGroups <= 256);  // positions in a part are bytes
  const int64_t parts = (groups + kMaxGroups - 1) / kMaxGroups;
  int8_t* const data = panel + head_bytes<Sorted>(depth);
  auto* const sums = reinterpret_cast<int32_t*>(panel);
  for (int64_t column = 0; column < width; ++column) {
    sums[column] = 0;
    for (int64_t k = 0; k < depth; ++k) {
      sums[column] += data[k / Sorted::kGroup * size + column * Sorted::kGroup + k % Sorted::kGroup];
    }
  }
  int32_t* const fits = sums + width;
  auto* const order = reinterpret_cast<uint8_t*>(fits + parts);
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t first = part * kMaxGroups, count = std::min(kMaxGroups, groups - first);
    int8_t* const begin = data + first * size;
    const std::vector<int8_t> unsorted(begin, begin + count * size);
    std::vector<uint8_t> fitting, others;
    for (int64_t g = 0; g < count; ++g) {
      (fits_sixteen_bits(unsorted.data() + g * size, width) ? fitting : others).push_back(static_cast<uint8_t>(g));
    }
    fits[part] = static_cast<int32_t>(fitting.size());
    int8_t* to = begin;
    for (const uint8_t g : fitting) to = std::copy_n(unsorted.data() + g * size, size, to);
    for (const uint8_t g : others) {
      store_as_pairs(unsorted.data() + g * size, width, to);
      to += size;
    }
    std::copy(others.begin(), others.end(), std::copy(fitting.begin(), fitting.end(), order + first));
  }
}

#endif

// Some bytes that become numbers of a row.
struct ByteRun {
  const uint8_t* from;
  int64_t count;
  const uint8_t* end;  // of what may be read
  bool is_signed;
  int32_t zero;
};

#if HWY_TARGET == HWY_SCALAR

void prepare_run(Pairs, const ByteRun& run, int16_t* to, const int16_t*) {
  for (int64_t i = 0; i < run.count; ++i) {
    to[i] = static_cast<int16_t>((run.is_signed ? static_cast<int8_t>(run.from[i]) : run.from[i]) - run.zero);
  }
}

#else

// Calls put(i, bytes) for each vector of a run, of which the last may have others behind them.
template <class D8, class Put>
HWY_INLINE void for_vectors(D8 d, const ByteRun& run, const Put& put) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i < run.count && run.end - run.from - i >= lanes; i += lanes) put(i, hn::LoadU(d, run.from + i));
  for (; i < run.count; i += lanes) {
    HWY_ALIGN uint8_t last[HWY_MAX_BYTES] = {};
    std::memcpy(last, run.from + i, static_cast<size_t>(std::min(run.count - i, lanes)));
    put(i, hn::Load(d, last));
  }
}

// As much of a vector as fits in front of `end`.
template <class D, class Number>
HWY_INLINE void store_up_to(hn::Vec<D> v, D d, Number* to, const Number* end) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  if (end - to >= lanes) return hn::StoreU(v, d, to);
  HWY_ALIGN Number buffer[HWY_MAX_BYTES / sizeof(Number)];
  hn::Store(v, d, buffer);
  std::copy_n(buffer, end - to, to);
}

// Up to `end` numbers behind the run may be overwritten.
HWY_INLINE void prepare_run(Pairs, const ByteRun& run, int16_t* to, const int16_t* end) {
  const ShortD d;
  const hn::Rebind<uint8_t, ShortD> d8;
  const auto zero = hn::Set(d, static_cast<int16_t>(run.zero));
  if (run.is_signed) {
    for_vectors(d8, run, [&](int64_t i, hn::Vec<decltype(d8)> bytes) HWY_ATTR {
      const auto number = hn::PromoteTo(d, hn::BitCast(hn::Rebind<int8_t, ShortD>(), bytes));
      store_up_to(hn::Sub(number, zero), d, to + i, end);
    });
  } else {
    for_vectors(d8, run, [&](int64_t i, hn::Vec<decltype(d8)> bytes) HWY_ATTR {
      store_up_to(hn::Sub(hn::PromoteTo(d, bytes), zero), d, to + i, end);
    });
  }
}

#if AG_HAS_SORTED_PANELS || AG_MAY_HAVE_VNNI
HWY_INLINE void prepare_run(Quads, const ByteRun& run, uint8_t* to, const uint8_t* end) {
  const hn::Repartition<uint8_t, PairD> d;
  const auto flip = hn::Set(d, static_cast<uint8_t>(run.is_signed ? kUnsignedShift : 0));
  for_vectors(d, run, [&](int64_t i, hn::Vec<decltype(d)> bytes) HWY_ATTR {
    store_up_to(hn::Xor(bytes, flip), d, to + i, end);
  });
}
#endif

#endif

// The compiler makes vector instructions of it.
template <class Number>
HWY_INLINE int32_t sum_of(const Number* row, int64_t depth) {
  int32_t sum = 0;
  for (int64_t k = 0; k < depth; ++k) sum += row[k];
  return sum;
}

template <class Layout>
void prepare_rows_of(const ByteRows& rows, int64_t count, bool with_sums, void* to, IntegerRow* terms) {
  using Number = std::conditional_t<kKeepsZero<Layout>, uint8_t, int16_t>;
  using Run = std::conditional_t<kKeepsZero<Layout>, Quads, Pairs>;
  const int64_t depth = static_cast<int64_t>(rows.runs.size()) * rows.run_bytes;
  const int64_t step = row_bytes<Layout>(depth) / static_cast<int64_t>(sizeof(Number));
  const int64_t padded = num_groups<Layout>(depth) * Layout::kGroup;
  const int32_t zero = kKeepsZero<Layout> ? rows.zero + (rows.is_signed ? kUnsignedShift : 0) : 0;
  auto* const first = static_cast<Number*>(to);
  const Number* const end = first + count * step;
  for (int64_t r = 0; r < count; ++r) {
    Number* const row = first + r * step;
    Number* at = row;
    for (const int64_t run : rows.runs) {
      prepare_run(Run(), {rows.starts[r] + run, rows.run_bytes, rows.end, rows.is_signed, rows.zero}, at, end);
      at += rows.run_bytes;
    }
    std::fill(at, row + padded, Number{0});
    if constexpr (std::is_same_v<Layout, Sorted>) {
      // Behind the bytes stand the same as numbers.
      prepare_run(Pairs(), {row, padded, row + padded, false, 0}, reinterpret_cast<int16_t*>(row + padded),
                  reinterpret_cast<const int16_t*>(end));
    }
    terms[r] = {with_sums ? static_cast<int32_t>(sum_of(row, depth) - depth * zero) : 0, zero};
  }
}

void prepare_rows(const ByteRows& rows, int64_t count, bool with_sums, void* to, IntegerRow* terms) {
  with_panel_layout(rows.packed,
                    [&]<class Layout>(Layout) HWY_ATTR { prepare_rows_of<Layout>(rows, count, with_sums, to, terms); });
}

void finish_panels([[maybe_unused]] int64_t count, [[maybe_unused]] int64_t depth, [[maybe_unused]] PackedWhen packed,
                   [[maybe_unused]] int8_t* panels) {
#if AG_HAS_SORTED_PANELS
  if (packed == PackedWhen::each_run) return;
  for (; count > 0; count -= pair_panel_width(), panels += panel_bytes<Sorted>(depth)) sort_panel(depth, panels);
#endif
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

HWY_EXPORT(panel_width_of_target);
HWY_EXPORT(tile_rows_of_target);
HWY_EXPORT(group_of_target);
HWY_EXPORT(row_bytes_of_target);
HWY_EXPORT(panel_bytes_of_target);
HWY_EXPORT(multiply);
HWY_EXPORT(pack_group);
HWY_EXPORT(finish_panels);
HWY_EXPORT(prepare_rows);

}  // namespace

int64_t integer_panel_width() { return HWY_DYNAMIC_DISPATCH(panel_width_of_target)(); }
int64_t integer_tile_rows() { return HWY_DYNAMIC_DISPATCH(tile_rows_of_target)(); }
int64_t integer_group(PackedWhen packed) { return HWY_DYNAMIC_DISPATCH(group_of_target)(packed); }
int64_t integer_row_bytes(int64_t depth, PackedWhen packed) {
  return HWY_DYNAMIC_DISPATCH(row_bytes_of_target)(depth, packed);
}
int64_t integer_panel_bytes(int64_t depth, PackedWhen packed) {
  return HWY_DYNAMIC_DISPATCH(panel_bytes_of_target)(depth, packed);
}

void prepare_integer_rows(const ByteRows& rows, int64_t count, bool with_sums, void* to, IntegerRow* terms) {
  HWY_DYNAMIC_DISPATCH(prepare_rows)(rows, count, with_sums, to, terms);
}

IntegerRow prepare_integer_row(const uint8_t* bytes, bool is_signed, int32_t zero, int64_t depth, PackedWhen packed,
                               void* row) {
  const int64_t run = 0;
  const ByteRows rows{.starts = &bytes,
                      .runs = {&run, 1},
                      .run_bytes = depth,
                      .end = bytes + depth,
                      .is_signed = is_signed,
                      .zero = zero,
                      .packed = packed};
  IntegerRow terms{};
  prepare_integer_rows(rows, 1, true, row, &terms);
  return terms;
}

void pack_integer_rows(const ByteMatrix& rows, int64_t count, int64_t k, int64_t depth, PackedWhen packed,
                       int8_t* panels) {
  HWY_DYNAMIC_DISPATCH(pack_group)(rows, count, k, depth, packed, panels);
}

void finish_integer_panels(int64_t count, int64_t depth, PackedWhen packed, int8_t* panels) {
  HWY_DYNAMIC_DISPATCH(finish_panels)(count, depth, packed, panels);
}

void pack_integer_matrices(const ByteMatrices& matrices, int threads, PackedWhen packed, int8_t* panels) {
  const int64_t depth = matrices.depth, columns = matrices.columns;
  const int64_t group = integer_group(packed), groups = (depth + group - 1) / group, width = integer_panel_width();
  const int64_t panels_of_matrix = (columns + width - 1) / width, panel_size = integer_panel_bytes(depth, packed);
  for_shares(threads, matrices.count * groups, [&](int64_t begin, int64_t end, int) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t matrix = unit / groups, k = unit % groups * group;
      pack_integer_rows({matrices.bytes + (matrix * depth + k) * columns, columns, matrices.is_signed}, columns, k,
                        depth, packed, panels + matrix * panels_of_matrix * panel_size);
    }
  });
  for_shares(threads, matrices.count * panels_of_matrix, [&](int64_t begin, int64_t end, int) {
    finish_integer_panels((end - begin) * width, depth, packed, panels + begin * panel_size);
  });
}

int useful_integer_threads(int threads, double products) {
  constexpr double kProductsOfWork = 16;  // in the time that one element takes (parallel.h)
  return useful_threads(threads, static_cast<int64_t>(std::min(products / kProductsOfWork, 1e15)));
}

void multiply_integers(const IntegerProductTask& task) { HWY_DYNAMIC_DISPATCH(multiply)(task); }

std::vector<KernelVariant> integer_variants(const KernelCall& call) {
  return integer_kernel_variants(call, integer_group(PackedWhen::each_run) == kPairGroup ? 140e3 : 400e3);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

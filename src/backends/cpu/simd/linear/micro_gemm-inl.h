// Small matrix products in registers: C (+)= A B, where B is packed into panels of one or two vectors' width.
//
// A panel holds, row after row, the same few columns of B, so that it is read from front to back. Missing columns of
// the last panel are zeros. A and C are row-major.
#if defined(AG_SIMD_MICRO_GEMM_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_MICRO_GEMM_INL_H
#undef AG_SIMD_MICRO_GEMM_INL_H
#else
#define AG_SIMD_MICRO_GEMM_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Rows of a tile: with two vectors of sums for each, the registers of the target are used but not exceeded.
constexpr int64_t kTileRows = HWY_TARGET == HWY_AVX3 ? 8 : HWY_TARGET == HWY_AVX2 ? 6 : 4;

/// Width of a full panel.
HWY_INLINE int64_t panel_width() { return 2 * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

/// Columns with the padding of the last panel.
HWY_INLINE int64_t padded_columns(int64_t columns) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>()));
  return (columns + lanes - 1) / lanes * lanes;
}

struct TileProduct {
  const float* a;
  int64_t a_stride;
  const float* panel;
  int64_t depth;
  float* c;
  int64_t c_stride;
  bool accumulate;
  /// Panels of the next product: brought into the first cache meanwhile. Null for none.
  const float* next_panel = nullptr;
};

// Holds v in a register. GCC likes to read a vector from memory again for each of its uses, which takes as many reads
// as multiplications.
template <class V>
HWY_INLINE void keep_in_register([[maybe_unused]] V& v) {
#if defined(__GNUC__) && (HWY_TARGET == HWY_SSE4 || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)
  asm("" : "+v"(v.raw));
#endif
}

// With kAhead each step brings closer `ahead` elements of what is read next.
template <int kRows, int kVectors, bool kAhead>
HWY_INLINE void multiply_tile(const TileProduct& product, int64_t ahead) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[r][v] = product.accumulate ? hn::LoadU(d, product.c + r * product.c_stride + v * lanes) : hn::Zero(d);
    }
  }
  const float* b = product.panel;
  const float* next = product.next_panel;
  for (int64_t k = 0; k < product.depth; ++k, b += kVectors * lanes) {
    V columns[kVectors];
    if constexpr (kAhead) {
      hwy::Prefetch(next);
      next += ahead;
    }
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = hn::LoadU(d, b + v * lanes);
      keep_in_register(columns[v]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, product.a[r * product.a_stride + k]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(factor, columns[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, product.c + r * product.c_stride + v * lanes);
  }
}

// One row has too few sums to hide how long a multiplication takes: several partial sums for each.
template <int kVectors>
HWY_INLINE void multiply_row(const TileProduct& product) {
  constexpr int kPartial = 4;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const size_t lanes = hn::Lanes(d);
  V sums[kPartial][kVectors];
#pragma GCC unroll 4
  for (int p = 0; p < kPartial; ++p) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      sums[p][v] = p == 0 && product.accumulate ? hn::LoadU(d, product.c + v * lanes) : hn::Zero(d);
    }
  }
  const float* b = product.panel;
  int64_t k = 0;
  for (; k + kPartial <= product.depth; k += kPartial) {
#pragma GCC unroll 4
    for (int p = 0; p < kPartial; ++p) {
      const V factor = hn::Set(d, product.a[k + p]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v, b += lanes) sums[p][v] = hn::MulAdd(factor, hn::LoadU(d, b), sums[p][v]);
    }
  }
  for (; k < product.depth; ++k) {
    const V factor = hn::Set(d, product.a[k]);
    for (int v = 0; v < kVectors; ++v, b += lanes) sums[0][v] = hn::MulAdd(factor, hn::LoadU(d, b), sums[0][v]);
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const V total = hn::Add(hn::Add(sums[0][v], sums[1][v]), hn::Add(sums[2][v], sums[3][v]));
    hn::StoreU(total, d, product.c + v * lanes);
  }
}

// A tile of `rows` rows, two to kRows.
template <int kRows, int kVectors, bool kAhead>
HWY_INLINE void multiply_rows(const TileProduct& product, int64_t rows, int64_t ahead) {
  if constexpr (kRows == 2) {
    multiply_tile<kRows, kVectors, kAhead>(product, ahead);
  } else {
    if (rows == kRows) return multiply_tile<kRows, kVectors, kAhead>(product, ahead);
    multiply_rows<kRows - 1, kVectors, kAhead>(product, rows, ahead);
  }
}

// As few tiles as there can be, of about as many rows each: a tile of few rows waits for its sums.
template <int kVectors, bool kAhead>
HWY_INLINE void multiply_panel(TileProduct product, int64_t rows) {
  if (rows <= 1) return rows == 1 ? multiply_row<kVectors>(product) : void();
  auto tiles = static_cast<uint32_t>((rows + kTileRows - 1) / kTileRows);
  int64_t ahead = 0;
  if constexpr (kAhead) ahead = kVectors * static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())) / tiles;
  // A single tile, as of the rows of a small batch, is not worth a division.
  for (; tiles > 1; --tiles) {
    const int64_t now = (static_cast<uint32_t>(rows) + tiles - 1) / tiles;
    multiply_rows<kTileRows, kVectors, kAhead>(product, now, ahead);
    rows -= now;
    product.a += now * product.a_stride;
    product.c += now * product.c_stride;
    if constexpr (kAhead) product.next_panel += ahead * product.depth;
  }
  multiply_rows<kTileRows, kVectors, kAhead>(product, rows, ahead);
}

/// C (+)= A B for `rows` rows of A and `columns` columns of B, which is packed: `panel` is its first panel. Writes
/// padded_columns(columns) columns of C. A panel stays in the first cache for all rows.
template <bool kAhead = false>
HWY_INLINE void multiply_packed(TileProduct product, int64_t rows, int64_t columns) {
  const int64_t width = panel_width();
  const int64_t padded = padded_columns(columns);
  for (int64_t column = 0; column < padded; column += width) {
    if (padded - column >= width) {
      multiply_panel<2, kAhead>(product, rows);
    } else {
      multiply_panel<1, kAhead>(product, rows);
    }
    product.panel += product.depth * width;
    if constexpr (kAhead) product.next_panel += product.depth * width;
    product.c += width;
  }
}

/// Packs a row-major B [depth, columns] with the given distance between rows.
HWY_INLINE void pack_rows(const float* b, int64_t stride, int64_t depth, int64_t columns, float* panels) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t padded = padded_columns(columns);
  for (int64_t column = 0; column < padded; column += panel_width()) {
    const int64_t width = std::min(panel_width(), padded - column);
    for (int64_t k = 0; k < depth; ++k, panels += width) {
      for (int64_t at = 0; at < width; at += lanes) {
        const int64_t rest = columns - column - at;
        const float* from = b + k * stride + column + at;
        hn::StoreU(rest >= lanes ? hn::LoadU(d, from)
                                 : load_some(d, from, static_cast<size_t>(std::max<int64_t>(rest, 0)), hn::Zero(d)),
                   d, panels + at);
      }
    }
  }
}

/// to[c * to_stride + r] = from[r * from_stride + c] for a block of 4 x 4.
HWY_INLINE void transpose_4x4(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < 4; ++r) {
    for (int64_t c = 0; c < 4; ++c) to[c * to_stride + r] = from[r * from_stride + c];
  }
#else
  const hn::FixedTag<float, 4> d;
  const hn::FixedTag<double, 2> wide;
  const auto r0 = hn::LoadU(d, from), r1 = hn::LoadU(d, from + from_stride);
  const auto r2 = hn::LoadU(d, from + 2 * from_stride), r3 = hn::LoadU(d, from + 3 * from_stride);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)), d, to + 3 * to_stride);
#endif
}

/// Packs B = T^T for a row-major T [columns, depth]: as pack_rows() of the transpose.
HWY_INLINE void pack_transposed(const float* t, int64_t stride, int64_t depth, int64_t columns, float* panels) {
  const int64_t padded = padded_columns(columns);
  for (int64_t column = 0; column < padded; column += panel_width()) {
    const int64_t width = std::min(panel_width(), padded - column);
    const int64_t given = std::min(width, columns - column);
    const float* from = t + column * stride;
    for (int64_t c = 0; c < given; c += 4) {
      int64_t k = 0;
      if (given - c >= 4) {
        for (; k + 4 <= depth; k += 4) transpose_4x4(from + c * stride + k, stride, panels + k * width + c, width);
      }
      for (; k < depth; ++k) {
        for (int64_t i = c; i < std::min(c + 4, given); ++i) panels[k * width + i] = from[i * stride + k];
      }
    }
    for (int64_t k = 0; k < depth && given < width; ++k) {
      std::fill(panels + k * width + given, panels + (k + 1) * width, 0.0F);
    }
    panels += depth * width;
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

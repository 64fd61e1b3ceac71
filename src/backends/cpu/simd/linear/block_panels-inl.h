// How panels of weights in blocks (block_products.h) lie in memory, and where their results go.
#if defined(AG_SIMD_BLOCK_PANELS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_BLOCK_PANELS_INL_H
#undef AG_SIMD_BLOCK_PANELS_INL_H
#else
#define AG_SIMD_BLOCK_PANELS_INL_H
#endif

#include <algorithm>
#include <cstdint>

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/block_products.h"
#include "backends/cpu/simd/linear/micro_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int kBlockVectors = 2;  // of columns in a panel

struct Block {
  const float* scales;
  const float* offsets;  // null where there are none
  const int32_t* words;
};

// Where the parts of a panel lie, counted in floats.
struct BlockLayout {
  int64_t words;  // from the beginning of a block
  int64_t block;  // from one block to the next
  bool has_offsets;

  HWY_INLINE explicit BlockLayout(const BlockFormat& format)
      : words(panel_width() * (format.has_zeros ? 2 : 1)),
        block(words + panel_width() * format.block / format.per_word()),
        has_offsets(format.has_zeros) {}

  HWY_INLINE Block at(const float* panel, int64_t which) const {
    const float* const begin = panel + which * block;
    return {begin, has_offsets ? begin + panel_width() : nullptr, reinterpret_cast<const int32_t*>(begin + words)};
  }
};

struct BlockColumns {
  const float* panel;
  float* c;
  int64_t c_stride;
};

// The last panel may hang over the end: its results go to `overhang`, [rows, panel_width()].
HWY_INLINE BlockColumns columns_of_panel(const BlockProduct& product, int64_t p, float* overhang) {
  const BlockFormat& format = product.format;
  const float* const panel =
      reinterpret_cast<const float*>(product.panels) + p * format.blocks * BlockLayout(format).block;
  const int64_t first = p * panel_width();
  if (first + panel_width() > format.n) return {panel, overhang, panel_width()};
  return {panel, product.c + first, format.n};
}

template <int kRows>
using BlockSums = hn::Vec<hn::ScalableTag<float>>[kRows][kBlockVectors];

template <int kRows>
HWY_INLINE void clear_sums(BlockSums<kRows>& sums) {
  const hn::ScalableTag<float> d;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) sums[r][v] = hn::Zero(d);
  }
}

template <int kRows>
HWY_INLINE void store_sums(const BlockSums<kRows>& sums, const BlockColumns& columns) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) hn::StoreU(sums[r][v], d, columns.c + r * columns.c_stride + v * lanes);
  }
}

// What hangs over the end to where it belongs.
HWY_INLINE void copy_overhang(const BlockProduct& product, const float* overhang) {
  const int64_t n = product.format.n, first = n / panel_width() * panel_width();
  if (product.end * panel_width() <= n) return;
  for (int64_t row = 0; row < product.rows; ++row) {
    std::copy_n(overhang + row * panel_width(), n - first, product.c + row * n + first);
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

#include "backends/cpu/simd/linear/block_products.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/block_products.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/block_panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;

// Depth that is unpacked at a time, and rows that are multiplied with it: the former stays in the first cache, what is
// read of the latter in the second.
constexpr int64_t kUnpackedDepth = 256;
constexpr int64_t kChunkRows = 128;

HWY_INLINE int64_t lanes() { return static_cast<int64_t>(hn::Lanes(DF())); }

int64_t width_of_block_panel() { return panel_width(); }

// Number `which` of each word, less the middle.
template <int kBits>
HWY_INLINE VF unpack_number(VI words, int which) {
  const DF d;
  const DI di;
  const VI shifted = hn::ShiftRightSame(words, which * kBits);
#if HWY_TARGET == HWY_AVX3
  if constexpr (kBits == 4) {
    // A look-up reads the low four bits alone.
    alignas(64) static constexpr float kNumbers[16] = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
    return VF{_mm512_permutexvar_ps(shifted.raw, hn::Load(d, kNumbers).raw)};
  }
#endif
  const VI number = hn::And(shifted, hn::Set(di, (1 << kBits) - 1));
  return hn::ConvertTo(d, hn::Sub(number, hn::Set(di, 1 << (kBits - 1))));
}

// kParts sums for each element hide how long a multiplication takes where there are few rows.
template <int kBits, int kRows, int kParts>
HWY_INLINE void add_block(const Block& block, const float* a, int64_t a_stride, int64_t size,
                          VF (&sums)[kRows][kBlockVectors]) {
  constexpr int kPerWord = 32 / kBits;
  const DF d;
  const DI di;
  VF parts[kRows][kBlockVectors][kParts];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) {
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) parts[r][v][p] = hn::Zero(d);
    }
  }
  const int32_t* words = block.words;
  for (int64_t k = 0; k < size; k += kPerWord, words += kBlockVectors * lanes()) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) {
      const VI packed = hn::LoadU(di, words + v * lanes());
#pragma GCC unroll 8
      for (int i = 0; i < kPerWord; ++i) {
        const VF w = unpack_number<kBits>(packed, i);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          VF& part = parts[r][v][i % kParts];
          part = hn::MulAdd(hn::Set(d, a[r * a_stride + k + i]), w, part);
        }
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) {
      VF sum = parts[r][v][0];
#pragma GCC unroll 4
      for (int p = 1; p < kParts; ++p) sum = hn::Add(sum, parts[r][v][p]);
      sums[r][v] = hn::MulAdd(hn::LoadU(d, block.scales + v * lanes()), sum, sums[r][v]);
    }
  }
}

template <int kBits, int kRows, int kParts>
HWY_INLINE void multiply_few(const BlockFormat& format, const FloatRows& rows, const BlockColumns& columns) {
  const DF d;
  BlockSums<kRows> sums;
  clear_sums<kRows>(sums);
  const BlockLayout layout(format);
  for (int64_t b = 0; b < format.blocks; ++b) {
    const Block block = layout.at(columns.panel, b);
    add_block<kBits, kRows, kParts>(block, rows.numbers + b * format.block, rows.stride, format.block, sums);
    if (!format.has_zeros) continue;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kBlockVectors; ++v) {
        const VF sum = hn::Set(d, rows.sums[r * format.blocks + b]);
        sums[r][v] = hn::NegMulAdd(hn::LoadU(d, block.offsets + v * lanes()), sum, sums[r][v]);
      }
    }
  }
  store_sums<kRows>(sums, columns);
}

template <int kBits>
HWY_INLINE void multiply_few_rows(const BlockProduct& product, const FloatRows& rows, float* overhang) {
  for (int64_t p = product.begin; p < product.end; ++p) {
    const BlockColumns columns = columns_of_panel(product, p, overhang);
    switch (product.rows) {
      case 1: multiply_few<kBits, 1, 4>(product.format, rows, columns); break;
      case 2: multiply_few<kBits, 2, 2>(product.format, rows, columns); break;
      case 3: multiply_few<kBits, 3, 1>(product.format, rows, columns); break;
      default: multiply_few<kBits, kFewBlockRows, 1>(product.format, rows, columns);
    }
  }
}

// The rows of w^T of one block to `to`.
template <int kBits>
HWY_INLINE void unpack_block(const Block& block, int64_t size, float* to) {
  constexpr int kPerWord = 32 / kBits;
  const DF d;
  const DI di;
  for (int v = 0; v < kBlockVectors; ++v) {
    const VF scale = hn::LoadU(d, block.scales + v * lanes());
    const VF offset = block.offsets ? hn::LoadU(d, block.offsets + v * lanes()) : hn::Zero(d);
    for (int64_t k = 0; k < size; k += kPerWord) {
      const VI packed = hn::LoadU(di, block.words + (k / kPerWord * kBlockVectors + v) * lanes());
#pragma GCC unroll 8
      for (int i = 0; i < kPerWord; ++i) {
        hn::StoreU(hn::MulSub(unpack_number<kBits>(packed, i), scale, offset), d,
                   to + ((k + i) * kBlockVectors + v) * lanes());
      }
    }
  }
}

// Runs multiply(columns, first row, rows, first block, blocks) over chunks of rows and depth, of the results of which
// those of the first depth are written, the others added.
template <class Multiply>
HWY_INLINE void for_block_chunks(const BlockProduct& product, float* overhang, const Multiply& multiply) {
  const BlockFormat& format = product.format;
  const int64_t step = std::max<int64_t>(1, kUnpackedDepth / format.block);
  for (int64_t row = 0; row < product.rows; row += kChunkRows) {
    const int64_t rows = std::min(kChunkRows, product.rows - row);
    for (int64_t block = 0; block < format.blocks; block += step) {
      const int64_t blocks = std::min(step, format.blocks - block);
      for (int64_t p = product.begin; p < product.end; ++p) {
        BlockColumns columns = columns_of_panel(product, p, overhang);
        columns.c += row * columns.c_stride;
        multiply(columns, row, rows, block, blocks);
      }
    }
  }
}

template <int kBits>
HWY_INLINE void multiply_many_rows(const BlockProduct& product, const FloatRows& of, float* unpacked, float* overhang) {
  const BlockFormat& format = product.format;
  const int64_t width = panel_width();
  const BlockLayout layout(format);
  for_block_chunks(product, overhang,
                   [&](const BlockColumns& columns, int64_t row, int64_t rows, int64_t first, int64_t blocks) HWY_ATTR {
                     for (int64_t b = 0; b < blocks; ++b) {
                       unpack_block<kBits>(layout.at(columns.panel, first + b), format.block,
                                           unpacked + b * format.block * width);
                     }
                     const float* const numbers = of.numbers + row * of.stride + first * format.block;
                     multiply_packed({numbers, of.stride, unpacked, blocks * format.block, columns.c, columns.c_stride,
                                      /*accumulate=*/first > 0},
                                     rows, width);
                   });
}

int64_t working_floats_of_blocks(const BlockFormat& format, int64_t rows) {
  return (std::max(format.block, kUnpackedDepth) + rows) * panel_width();
}

void multiply_panels_by_floats(const BlockProduct& product, const FloatRows& rows, float* working) {
  float* const overhang = working + std::max(product.format.block, kUnpackedDepth) * panel_width();
  const bool is_few = product.rows <= kFewBlockRows;
  if (product.format.bits == 4) {
    is_few ? multiply_few_rows<4>(product, rows, overhang) : multiply_many_rows<4>(product, rows, working, overhang);
  } else {
    is_few ? multiply_few_rows<8>(product, rows, overhang) : multiply_many_rows<8>(product, rows, working, overhang);
  }
  copy_overhang(product, overhang);
}

int64_t bytes_of_block_panel(const BlockFormat& format) { return format.blocks * BlockLayout(format).block * 4; }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(width_of_block_panel);
HWY_EXPORT(bytes_of_block_panel);
HWY_EXPORT(working_floats_of_blocks);
HWY_EXPORT(multiply_panels_by_floats);

int64_t block_panel_width() { return HWY_DYNAMIC_DISPATCH(width_of_block_panel)(); }

int64_t block_panel_bytes(const BlockFormat& format) { return HWY_DYNAMIC_DISPATCH(bytes_of_block_panel)(format); }

int64_t block_working_bytes(const BlockFormat& format, int64_t rows) {
  return HWY_DYNAMIC_DISPATCH(working_floats_of_blocks)(format, rows) * static_cast<int64_t>(sizeof(float));
}

void pack_block_panel(const BlockFormat& format, const uint8_t* q, const float* scale, const float* zero, int64_t first,
                      uint8_t* panel) {
  const int64_t width = block_panel_width(), count = std::min(width, format.n - first);
  const int64_t words = format.block / format.per_word();
  std::memset(panel, 0, static_cast<size_t>(block_panel_bytes(format)));
  for (int64_t b = 0; b < format.blocks; ++b) {
    auto* const scales = reinterpret_cast<float*>(panel);
    panel += width * 4;
    float* const offsets = reinterpret_cast<float*>(panel);
    if (format.has_zeros) panel += width * 4;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = (first + j) * format.blocks + b;
      scales[j] = scale[at];
      if (format.has_zeros) offsets[j] = (zero[at] - static_cast<float>(format.middle())) * scale[at];
      for (int64_t w = 0; w < words; ++w) std::memcpy(panel + (w * width + j) * 4, q + (at * words + w) * 4, 4);
    }
    panel += width * 4 * words;
  }
}

void multiply_block_panels(const BlockProduct& product, const FloatRows& rows, uint8_t* working) {
  HWY_DYNAMIC_DISPATCH(multiply_panels_by_floats)(product, rows, reinterpret_cast<float*>(working));
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

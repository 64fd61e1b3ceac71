#include "backends/cpu/simd/linear/block_products.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/block_products.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/micro_gemm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using DF = hn::ScalableTag<float>;
using DI = hn::ScalableTag<int32_t>;
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;

constexpr int kVectors = 2;  // of columns in a panel
// Rows of w^T that are unpacked at a time: a panel of them stays in the first cache.
constexpr int64_t kUnpackedDepth = 256;

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

struct Block {
  const float* scales;
  const float* offsets;
  const int32_t* words;
};

HWY_INLINE Block block_of(const BlockProduct& product, int64_t which) {
  const int64_t width = panel_width(), of_words = width * product.format.block / product.format.per_word();
  const auto* at = reinterpret_cast<const float*>(product.panel) + which * (2 * width + of_words);
  return {at, at + width, reinterpret_cast<const int32_t*>(at + 2 * width)};
}

// kParts sums for each element hide how long a multiplication takes where there are few rows.
template <int kBits, int kRows, int kParts>
HWY_INLINE void add_block(const Block& block, const float* a, int64_t a_stride, int64_t size,
                          VF (&sums)[kRows][kVectors]) {
  constexpr int kPerWord = 32 / kBits;
  const DF d;
  const DI di;
  VF parts[kRows][kVectors][kParts];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
#pragma GCC unroll 4
      for (int p = 0; p < kParts; ++p) parts[r][v][p] = hn::Zero(d);
    }
  }
  const int32_t* words = block.words;
  for (int64_t k = 0; k < size; k += kPerWord, words += kVectors * lanes()) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
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
    for (int v = 0; v < kVectors; ++v) {
      VF sum = parts[r][v][0];
#pragma GCC unroll 4
      for (int p = 1; p < kParts; ++p) sum = hn::Add(sum, parts[r][v][p]);
      sums[r][v] = hn::MulAdd(hn::LoadU(d, block.scales + v * lanes()), sum, sums[r][v]);
    }
  }
}

template <int kBits, int kRows, int kParts>
HWY_INLINE void multiply_few(const BlockProduct& product) {
  const DF d;
  const BlockFormat& format = product.format;
  VF sums[kRows][kVectors];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t b = 0; b < format.blocks; ++b) {
    const Block block = block_of(product, b);
    add_block<kBits, kRows, kParts>(block, product.a + b * format.block, product.a_stride, format.block, sums);
    if (!format.has_zeros) continue;
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const VF sum = hn::Set(d, product.sums[r * format.blocks + b]);
        sums[r][v] = hn::NegMulAdd(hn::LoadU(d, block.offsets + v * lanes()), sum, sums[r][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], d, product.c + r * product.c_stride + v * lanes());
  }
}

template <int kBits>
HWY_INLINE void multiply_rows(const BlockProduct& product) {
  switch (product.rows) {
    case 1: return multiply_few<kBits, 1, 4>(product);
    case 2: return multiply_few<kBits, 2, 2>(product);
    case 3: return multiply_few<kBits, 3, 1>(product);
    default: return multiply_few<kBits, kFewBlockRows, 1>(product);
  }
}

// The rows of w^T of one block to `to`.
template <int kBits>
HWY_INLINE void unpack_block(const Block& block, int64_t size, float* to) {
  constexpr int kPerWord = 32 / kBits;
  const DF d;
  const DI di;
  for (int v = 0; v < kVectors; ++v) {
    const VF scale = hn::LoadU(d, block.scales + v * lanes()), offset = hn::LoadU(d, block.offsets + v * lanes());
    for (int64_t k = 0; k < size; k += kPerWord) {
      const VI packed = hn::LoadU(di, block.words + (k / kPerWord * kVectors + v) * lanes());
#pragma GCC unroll 8
      for (int i = 0; i < kPerWord; ++i) {
        hn::StoreU(hn::MulSub(unpack_number<kBits>(packed, i), scale, offset), d,
                   to + ((k + i) * kVectors + v) * lanes());
      }
    }
  }
}

template <int kBits>
HWY_INLINE void multiply_many(const BlockProduct& product, float* unpacked) {
  const BlockFormat& format = product.format;
  const int64_t width = panel_width();
  const int64_t step = std::max<int64_t>(1, kUnpackedDepth / format.block);
  for (int64_t first = 0; first < format.blocks; first += step) {
    const int64_t count = std::min(step, format.blocks - first);
    for (int64_t b = 0; b < count; ++b) {
      unpack_block<kBits>(block_of(product, first + b), format.block, unpacked + b * format.block * width);
    }
    multiply_packed({product.a + first * format.block, product.a_stride, unpacked, count * format.block, product.c,
                     product.c_stride, /*accumulate=*/first > 0},
                    product.rows, width);
  }
}

void multiply_panel_of_blocks(const BlockProduct& product, float* unpacked) {
  const bool is_few = product.rows <= kFewBlockRows;
  if (product.format.bits == 4) return is_few ? multiply_rows<4>(product) : multiply_many<4>(product, unpacked);
  is_few ? multiply_rows<8>(product) : multiply_many<8>(product, unpacked);
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(width_of_block_panel);
HWY_EXPORT(multiply_panel_of_blocks);

int64_t block_panel_width() { return HWY_DYNAMIC_DISPATCH(width_of_block_panel)(); }

int64_t block_panel_bytes(const BlockFormat& format) {
  return format.blocks * block_panel_width() * 4 * (2 + format.block / format.per_word());
}

int64_t block_unpacked_size(const BlockFormat& format) {
  return std::max<int64_t>(format.block, 256) * block_panel_width();
}

void pack_block_panel(const BlockFormat& format, const uint8_t* q, const float* scale, const float* zero, int64_t first,
                      uint8_t* panel) {
  const int64_t width = block_panel_width(), count = std::min(width, format.n - first);
  const int64_t words = format.block / format.per_word();
  std::memset(panel, 0, static_cast<size_t>(block_panel_bytes(format)));
  for (int64_t b = 0; b < format.blocks; ++b) {
    auto* const scales = reinterpret_cast<float*>(panel);
    float* const offsets = scales + width;
    uint8_t* const numbers = panel + 2 * width * 4;
    for (int64_t j = 0; j < count; ++j) {
      const int64_t at = (first + j) * format.blocks + b;
      scales[j] = scale[at];
      offsets[j] = zero ? (zero[at] - static_cast<float>(format.middle())) * scale[at] : 0;
      for (int64_t w = 0; w < words; ++w) std::memcpy(numbers + (w * width + j) * 4, q + (at * words + w) * 4, 4);
    }
    panel += width * 4 * (2 + words);
  }
}

void multiply_block_panel(const BlockProduct& product, float* unpacked) {
  HWY_DYNAMIC_DISPATCH(multiply_panel_of_blocks)(product, unpacked);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

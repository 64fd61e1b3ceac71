// Products of rounded rows: numbers of 16 bits times those of words, two neighbours by one instruction, summed in 32
// bits over a block. A word is unpacked to pairs by shifts and masks in its halves: number i of the low half beside
// number i of the high one, and rows are rounded to that order.
//
// Words are unpacked in registers for a few rows at a time, however many there are: a panel of weights stays in the
// first caches, and to unpack it to memory once is no faster for 128 rows and half as fast for eight.
#include <algorithm>
#include <cstring>

#include "backends/cpu/simd/isa.h"
#include "backends/cpu/simd/linear/block_products.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/linear/rounded_block_products.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/linear/block_panels-inl.h"
#include "backends/cpu/simd/linear/byte_products-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

#define AG_HAS_ROUNDED_BLOCKS (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

#if AG_HAS_ROUNDED_BLOCKS

constexpr float kLargest = 32767;  // of a rounded number

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
using VS = hn::Vec<ShortD>;

constexpr int64_t kLanes = HWY_LANES(float);

// How products of pairs are added up.
struct ShortSums {
  static HWY_INLINE PairV add(PairV sum, VS factor, VS weights) { return PairSums::add(sum, factor, weights); }
};

#if AG_MAY_HAVE_VNNI
struct ShortDots {
  static HWY_INLINE PairV add(PairV sum, VS factor, VS weights) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(factor.raw), "v"(weights.raw));
    return sum;
  }
};
#endif

template <class Body>
HWY_INLINE auto with_short_dots(const Body& body) {
#if AG_MAY_HAVE_VNNI
  if (has_wide_vnni()) return body(ShortDots());
#endif
  return body(ShortSums());
}

template <int kBits>
HWY_INLINE VS unpack_pairs(VS words, int which) {
  return hn::And(hn::ShiftRightSame(words, which * kBits), hn::Set(ShortD(), (1 << kBits) - 1));
}

// ---- Rounding --------------------------------------------------------------------------------------------------

// Numbers in half a word, a vector of which is rounded at a time.
template <int kBits>
using HalfF = hn::CappedTag<float, 16 / kBits>;

template <int kBits>
HWY_INLINE float largest_magnitude(const float* x, int64_t size) {
  constexpr HalfF<kBits> d;
  constexpr int kHalf = 16 / kBits;
  // As integers, of which those of numbers that are not finite are the largest.
  const hn::RebindToSigned<HalfF<kBits>> di;
  auto largest = hn::Zero(di);
  for (int64_t k = 0; k < size; k += kHalf) {
    largest = hn::Max(largest, hn::BitCast(di, hn::Abs(hn::LoadU(d, x + k))));
  }
  return hn::GetLane(hn::BitCast(d, hn::MaxOfLanes(di, largest)));
}

template <int kBits>
HWY_INLINE bool round_row(const BlockFormat& format, const float* x, const RoundedRows& to) {
  constexpr float kLeastBlock = 1e-30F, kMostBlock = 1e34F;
  constexpr HalfF<kBits> d;
  constexpr int kHalf = 16 / kBits;
  const hn::RebindToSigned<HalfF<kBits>> di;
  int16_t* numbers = to.numbers;
  for (int64_t b = 0; b < format.blocks; ++b) {
    const float largest = largest_magnitude<kBits>(x, format.block);
    const bool is_zero = largest == 0;
    if (!is_zero && !(largest >= kLeastBlock && largest <= kMostBlock)) return false;
    const auto factor = hn::Set(d, is_zero ? 0 : kLargest / largest);
    auto sum = hn::Zero(di);
    for (int64_t k = 0; k < format.block; k += 2 * kHalf, numbers += 2 * kHalf, x += 2 * kHalf) {
      const auto low = hn::NearestInt(hn::Mul(hn::LoadU(d, x), factor));
      const auto high = hn::NearestInt(hn::Mul(hn::LoadU(d, x + kHalf), factor));
      sum = hn::Add(sum, hn::Add(low, high));
      const auto pairs = hn::Or(hn::And(low, hn::Set(di, 0xFFFF)), hn::ShiftLeft<16>(high));
      hn::StoreU(pairs, di, reinterpret_cast<int32_t*>(numbers));
    }
    to.scales[b] = largest / kLargest;
    to.middles[b] = to.scales[b] * static_cast<float>(hn::GetLane(hn::SumOfLanes(di, sum)) * format.middle());
  }
  return true;
}

// ---- Products --------------------------------------------------------------------------------------------------

// sums += what the integers of block `which` stand for.
template <bool kHasOffsets, int kRows>
HWY_INLINE void add_scaled(const BlockFormat& format, const Block& block, const RoundedRows& rows, int64_t which,
                           const PairV (&integers)[kRows][kBlockVectors], VF (&sums)[kRows][kBlockVectors]) {
  const DF d;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    const int64_t at = r * format.blocks + which;
    const VF scale = hn::Set(d, rows.scales[at]), middle = hn::Set(d, rows.middles[at]);
#pragma GCC unroll 2
    for (int v = 0; v < kBlockVectors; ++v) {
      const VF sum = hn::MulSub(hn::ConvertTo(d, integers[r][v]), scale, middle);
      sums[r][v] = hn::MulAdd(hn::LoadU(d, block.scales + v * kLanes), sum, sums[r][v]);
    }
    if constexpr (kHasOffsets) {
      const VF of_row = hn::Set(d, rows.middles[at] / static_cast<float>(format.middle()));
#pragma GCC unroll 2
      for (int v = 0; v < kBlockVectors; ++v) {
        sums[r][v] = hn::NegMulAdd(hn::LoadU(d, block.offsets + v * kLanes), of_row, sums[r][v]);
      }
    }
  }
}

template <class Dots, int kBits, bool kHasOffsets, int kRows>
HWY_INLINE void multiply_rows(const BlockFormat& format, const RoundedRows& rows, const BlockColumns& columns) {
  constexpr int kHalf = 16 / kBits;
  constexpr int kParts = kRows == 1 ? 2 : 1;  // sums for each element, which hide how long a product takes
  constexpr int64_t kAhead = 2048;            // bytes: see QuadDots
  const PairD di;
  const ShortD ds;
  BlockSums<kRows> sums;
  clear_sums<kRows>(sums);
  const BlockLayout layout(format);
  for (int64_t b = 0; b < format.blocks; ++b) {
    const Block block = layout.at(columns.panel, b);
    const int32_t* words = block.words;
    const int16_t* numbers = rows.numbers + b * format.block;
    PairV integers[kParts][kRows][kBlockVectors];
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
        for (int v = 0; v < kBlockVectors; ++v) integers[part][r][v] = hn::Zero(di);
      }
    }
    for (int64_t k = 0; k < format.block; k += 2 * kHalf, words += kBlockVectors * kLanes, numbers += 2 * kHalf) {
      const VS first = hn::BitCast(ds, hn::LoadU(di, words)), second = hn::BitCast(ds, hn::LoadU(di, words + kLanes));
      hwy::Prefetch(reinterpret_cast<const char*>(words) + kAhead);
#pragma GCC unroll 8
      for (int i = 0; i < kHalf; ++i) {
        const VS left = unpack_pairs<kBits>(first, i), right = unpack_pairs<kBits>(second, i);
#pragma GCC unroll 8
        for (int r = 0; r < kRows; ++r) {
          const VS factor = broadcast_pair(numbers + r * rows.stride + 2 * i);
          auto& to = integers[i % kParts][r];
          to[0] = Dots::add(to[0], factor, left);
          to[1] = Dots::add(to[1], factor, right);
        }
      }
    }
    if constexpr (kParts == 2) {
      for (int v = 0; v < kBlockVectors; ++v) integers[0][0][v] = hn::Add(integers[0][0][v], integers[1][0][v]);
    }
    add_scaled<kHasOffsets>(format, block, rows, b, integers[0], sums);
  }
  store_sums<kRows>(sums, columns);
}

// Rows whose sums stay in registers.
constexpr int kRowsAtOnce = HWY_TARGET == HWY_AVX3 ? 8 : 4;

template <class Dots, int kBits, bool kHasOffsets, int kRows>
HWY_INLINE void multiply_some(const BlockFormat& format, const RoundedRows& rows, int64_t count,
                              const BlockColumns& columns) {
  if constexpr (kRows > 0) {
    if (count == kRows) return multiply_rows<Dots, kBits, kHasOffsets, kRows>(format, rows, columns);
    multiply_some<Dots, kBits, kHasOffsets, kRows - 1>(format, rows, count, columns);
  }
}

// Rows [first, first + count), a few at a time and about equally many, times one panel.
template <class Dots, int kBits, bool kHasOffsets>
HWY_INLINE void multiply_panel(const BlockFormat& format, const RoundedRows& rows, int64_t first, int64_t count,
                               BlockColumns columns) {
  columns.c += first * columns.c_stride;
  for (int64_t steps = (count + kRowsAtOnce - 1) / kRowsAtOnce; steps > 0; --steps) {
    const int64_t some = (count + steps - 1) / steps;
    multiply_some<Dots, kBits, kHasOffsets, kRowsAtOnce>(format, rows.from(format, first), some, columns);
    first += some, count -= some;
    columns.c += some * columns.c_stride;
  }
}

template <int kBits, bool kHasOffsets>
HWY_INLINE void multiply_panels(const BlockProduct& product, const RoundedRows& rows, float* overhang) {
  constexpr int64_t kChunkBytes = 256 * 1024;  // of rows that meet all panels: they stay in the second cache
  const BlockFormat& format = product.format;
  const int64_t chunk = std::max<int64_t>(kRowsAtOnce, kChunkBytes / (format.depth() * 2));
  with_short_dots([&](auto dots) HWY_ATTR {
    for (int64_t row = 0; row < product.rows; row += chunk) {
      const int64_t count = std::min(chunk, product.rows - row);
      for (int64_t p = product.begin; p < product.end; ++p) {
        multiply_panel<decltype(dots), kBits, kHasOffsets>(format, rows, row, count,
                                                           columns_of_panel(product, p, overhang));
      }
    }
  });
  copy_overhang(product, overhang);
}

#endif

bool has_rounded_blocks() { return AG_HAS_ROUNDED_BLOCKS; }

bool round_row_of_blocks([[maybe_unused]] const BlockFormat& format, [[maybe_unused]] const float* x,
                         [[maybe_unused]] const RoundedRows& to) {
#if AG_HAS_ROUNDED_BLOCKS
  return format.bits == 4 ? round_row<4>(format, x, to) : round_row<8>(format, x, to);
#else
  return false;
#endif
}

void multiply_panels_by_rounded([[maybe_unused]] const BlockProduct& product, [[maybe_unused]] const RoundedRows& rows,
                                [[maybe_unused]] float* overhang) {
#if AG_HAS_ROUNDED_BLOCKS
  const bool has_zeros = product.format.has_zeros;
  if (product.format.bits == 4) {
    has_zeros ? multiply_panels<4, true>(product, rows, overhang) : multiply_panels<4, false>(product, rows, overhang);
  } else {
    has_zeros ? multiply_panels<8, true>(product, rows, overhang) : multiply_panels<8, false>(product, rows, overhang);
  }
#endif
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(has_rounded_blocks);
HWY_EXPORT(round_row_of_blocks);
HWY_EXPORT(multiply_panels_by_rounded);

bool can_multiply_rounded(const BlockFormat& format) {
  constexpr int64_t kLargestSum = INT32_MAX;
  const int64_t of_block = format.block * static_cast<int64_t>(32767) * ((int64_t{1} << format.bits) - 1);
  return of_block <= kLargestSum && HWY_DYNAMIC_DISPATCH(has_rounded_blocks)();
}

bool round_block_row(const BlockFormat& format, const float* x, const RoundedRows& to) {
  return HWY_DYNAMIC_DISPATCH(round_row_of_blocks)(format, x, to);
}

void multiply_block_panels(const BlockProduct& product, const RoundedRows& rows, uint8_t* working) {
  HWY_DYNAMIC_DISPATCH(multiply_panels_by_rounded)(product, rows, reinterpret_cast<float*>(working));
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

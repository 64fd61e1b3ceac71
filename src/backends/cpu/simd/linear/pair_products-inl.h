// Rows of 16-bit numbers times panels of bytes, summed in 32 bits: two products of neighbours in depth go into each sum
// with one instruction, which every x86 CPU has. Sums wrap around; products of 16 bits with 8 cannot overflow before.
//
// A panel holds, pair after pair of the depth, both bytes of each of its columns.
#if defined(AG_SIMD_PAIR_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_PAIR_PRODUCTS_INL_H
#undef AG_SIMD_PAIR_PRODUCTS_INL_H
#else
#define AG_SIMD_PAIR_PRODUCTS_INL_H
#endif

#include <cstdint>
#include <cstring>

#include <hwy/highway.h>
#include "backends/cpu/simd/isa.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PairD = hn::ScalableTag<int32_t>;
using PairV = hn::Vec<PairD>;
constexpr int kPairVectors = 2;  // of sums for each row

/// Columns of a panel.
HWY_INLINE int64_t pair_panel_width() { return kPairVectors * static_cast<int64_t>(hn::Lanes(PairD())); }

#if HWY_TARGET == HWY_SCALAR

/// sums[r] += row r times the panel, for kCount rows that lie `stride` apart.
template <int kCount>
HWY_INLINE void add_pair_products(const int16_t* rows, int64_t stride, const int8_t* panel, int64_t pairs,
                                  PairV (&sums)[kCount][kPairVectors]) {
  for (int64_t k = 0; k < 2 * pairs; ++k) {
    for (int r = 0; r < kCount; ++r) {
      for (int v = 0; v < kPairVectors; ++v) {
        sums[r][v].raw += rows[r * stride + k] * panel[k / 2 * 2 * kPairVectors + 2 * v + k % 2];
      }
    }
  }
}

#else

using ShortD = hn::Repartition<int16_t, PairD>;

HWY_INLINE hn::Vec<ShortD> load_pairs(const int8_t* from) {
  return hn::PromoteTo(ShortD(), hn::LoadU(hn::Rebind<int8_t, ShortD>(), from));
}

HWY_INLINE hn::Vec<ShortD> broadcast_pair(const int16_t* from) {
  int32_t pair;
  std::memcpy(&pair, from, sizeof(pair));
  return hn::BitCast(ShortD(), hn::Set(PairD(), pair));
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

// By name, since GCC else gives each sum a new register in every step: of 16 some go through memory, and each step
// waits; of 32 each is copied.
template <bool kHasDots>
HWY_INLINE PairV add_pair(PairV sum, hn::Vec<ShortD> factor, hn::Vec<ShortD> weights) {
#if HWY_TARGET == HWY_AVX2
  const __m256i products = _mm256_madd_epi16(factor.raw, weights.raw);
  asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(products));
#else
  if constexpr (kHasDots) {
    asm("vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(factor.raw), "v"(weights.raw));
  } else {
    const __m512i products = _mm512_madd_epi16(factor.raw, weights.raw);
    asm("vpaddd %1, %0, %0" : "+v"(sum.raw) : "v"(products));
  }
#endif
  return sum;
}

// kParts sums for each element hide how long an instruction takes.
template <bool kHasDots, int kParts, int kCount>
HWY_INLINE void add_pair_products_in_parts(const int16_t* rows, int64_t stride, const int8_t* panel, int64_t pairs,
                                           PairV (&sums)[kCount][kPairVectors]) {
  constexpr auto kHalf = static_cast<int64_t>(HWY_LANES(int16_t));  // bytes of one vector of sums
  PairV parts[kParts][kCount][kPairVectors];
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      parts[part][r][0] = part == 0 ? sums[r][0] : hn::Zero(PairD());
      parts[part][r][1] = part == 0 ? sums[r][1] : hn::Zero(PairD());
    }
  }
  const auto add = [&](int64_t p, PairV(&to)[kCount][kPairVectors]) HWY_ATTR {
    const int8_t* const at = panel + p * kPairVectors * kHalf;
    const auto first = load_pairs(at), second = load_pairs(at + kHalf);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const auto factor = broadcast_pair(rows + r * stride + 2 * p);
      to[r][0] = add_pair<kHasDots>(to[r][0], factor, first);
      to[r][1] = add_pair<kHasDots>(to[r][1], factor, second);
    }
  };
  // A step of one or two rows is so short that else its time depends on where the loop happens to lie in memory.
  constexpr int64_t kSteps = kCount <= 2 ? 4 : kParts;
  int64_t p = 0;
  for (; p + kSteps <= pairs; p += kSteps) {
#pragma GCC unroll 4
    for (int64_t step = 0; step < kSteps; ++step) add(p + step, parts[step % kParts]);
  }
  for (; p < pairs; ++p) add(p, parts[0]);
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) {
      sums[r][v] = parts[0][r][v];
#pragma GCC unroll 4
      for (int part = 1; part < kParts; ++part) sums[r][v] = hn::Add(sums[r][v], parts[part][r][v]);
    }
  }
}

template <int kCount>
HWY_INLINE void add_pair_products(const int16_t* rows, int64_t stride, const int8_t* panel, int64_t pairs,
                                  PairV (&sums)[kCount][kPairVectors]) {
#if HWY_TARGET == HWY_AVX3
  // CPUs with VNNI that lack other things of Highway's next target multiply and add in one instruction.
  if (has_wide_vnni()) {
    constexpr int kParts = kCount == 1 ? 4 : kCount <= 3 ? 2 : 1;
    return add_pair_products_in_parts<true, kParts>(rows, stride, panel, pairs, sums);
  }
#endif
  add_pair_products_in_parts<false, 1>(rows, stride, panel, pairs, sums);
}

#else

template <int kCount>
HWY_INLINE void add_pair_products(const int16_t* rows, int64_t stride, const int8_t* panel, int64_t pairs,
                                  PairV (&sums)[kCount][kPairVectors]) {
  const PairD d;
  const auto half = static_cast<int64_t>(hn::Lanes(ShortD()));  // bytes of one vector of sums
  PairV more[kCount][kPairVectors];                             // stay 0 where one instruction adds both products
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) more[r][v] = hn::Zero(d);
  }
  for (int64_t p = 0; p < pairs; ++p, panel += kPairVectors * half) {
    const auto first = load_pairs(panel), second = load_pairs(panel + half);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const auto factor = broadcast_pair(rows + r * stride + 2 * p);
      sums[r][0] = hn::ReorderWidenMulAccumulate(d, factor, first, sums[r][0], more[r][0]);
      sums[r][1] = hn::ReorderWidenMulAccumulate(d, factor, second, sums[r][1], more[r][1]);
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kCount; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kPairVectors; ++v) sums[r][v] = hn::RearrangeToOddPlusEven(sums[r][v], more[r][v]);
  }
}

#endif

#endif

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

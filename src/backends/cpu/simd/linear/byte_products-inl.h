// Rows of numbers times panels of bytes, summed in 32 bits, several neighbours in depth by one instruction: two of
// 16-bit numbers, which every x86 CPU has, or four of bytes without a sign, with VNNI. Sums wrap around; nothing
// saturates, and products of 16 bits with 8 cannot overflow before they are added.
//
// A panel holds, group after group of neighbours in the depth, all bytes of each of its columns.
#if defined(AG_SIMD_BYTE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_BYTE_PRODUCTS_INL_H
#undef AG_SIMD_BYTE_PRODUCTS_INL_H
#else
#define AG_SIMD_BYTE_PRODUCTS_INL_H
#endif

#include <cstdint>
#include <cstring>

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "backends/cpu/simd/isa.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// How rows lie in memory, and the bytes of a panel: in groups of so many neighbours in depth.
struct Quads {
  static constexpr int64_t kGroup = 4;
};
struct Pairs {
  static constexpr int64_t kGroup = 2;
};

// Have CPUs of this target VNNI, or some of them? Highway's next target asks for other things, too.
#define AG_MAY_HAVE_VNNI (HWY_TARGET == HWY_AVX3)

// Bytes of panels that are packed once, on CPUs with AVX2 alone: in groups of four, of which those come first whose
// products of two neighbours fit 16 bits, whatever the rows are. The others are multiplied in pairs. Rows are there in
// both forms.
struct Sorted {
  static constexpr int64_t kGroup = 4;
};
#define AG_HAS_SORTED_PANELS (HWY_TARGET == HWY_AVX2)

// Runs `body` for the layout of this CPU.
template <class Body>
HWY_INLINE auto with_byte_layout(const Body& body) {
#if AG_MAY_HAVE_VNNI
  if (has_wide_vnni()) return body(Quads());
#endif
  return body(Pairs());
}

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

// Each adds products of a group of a row with the groups of one vector of columns to sums. Instructions stand by name,
// since GCC else gives each sum a new register in every step: of 16 some go through memory, and each step waits; of 32
// each is copied.
struct PairSums {
  static constexpr int64_t kGroup = Pairs::kGroup;
  using V = hn::Vec<ShortD>;
  static HWY_INLINE V load(const int8_t* from) { return load_pairs(from); }
  static HWY_INLINE V broadcast(const void* from) { return broadcast_pair(static_cast<const int16_t*>(from)); }
  static HWY_INLINE PairV add(PairV sum, V factor, V weights) {
#if HWY_TARGET == HWY_AVX2
    const __m256i products = _mm256_madd_epi16(factor.raw, weights.raw);
    asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(products));
#else
    const __m512i products = _mm512_madd_epi16(factor.raw, weights.raw);
    asm("vpaddd %1, %0, %0" : "+v"(sum.raw) : "v"(products));
#endif
    return sum;
  }
};

#if AG_MAY_HAVE_VNNI

// With VNNI.
struct QuadDots {
  static constexpr int64_t kGroup = Quads::kGroup;
  // Bytes from what is read to what is fetched ahead, into the next panels. Weights that no second-level cache holds
  // are else waited for: the CPU looks ahead to the end of a page of memory, and these are few steps to it.
  static constexpr int64_t kAhead = 2048;
  using V = PairV;
  static HWY_INLINE V load(const int8_t* from) {
    hwy::Prefetch(from + kAhead);
    return hn::LoadU(PairD(), reinterpret_cast<const int32_t*>(from));
  }
  static HWY_INLINE V broadcast(const void* from) {
    int32_t quad;
    std::memcpy(&quad, from, sizeof(quad));
    return hn::Set(PairD(), quad);
  }
  static HWY_INLINE PairV add(PairV sum, V factor, V weights) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(factor.raw), "v"(weights.raw));
    return sum;
  }
};

#endif

// kParts sums for each element hide how long an instruction takes. Rows lie `stride` bytes apart.
template <class Dots, int kParts, int kCount>
HWY_INLINE void add_group_products(const void* rows, int64_t stride, const int8_t* panel, int64_t groups,
                                   PairV (&sums)[kCount][kPairVectors]) {
  constexpr int64_t kVectorBytes = Dots::kGroup * HWY_LANES(int32_t);
  constexpr int64_t kFactorBytes = 4;
  PairV parts[kParts][kCount][kPairVectors];
#pragma GCC unroll 4
  for (int part = 0; part < kParts; ++part) {
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      parts[part][r][0] = part == 0 ? sums[r][0] : hn::Zero(PairD());
      parts[part][r][1] = part == 0 ? sums[r][1] : hn::Zero(PairD());
    }
  }
  const auto add = [&](int64_t g, PairV(&to)[kCount][kPairVectors]) HWY_ATTR {
    const int8_t* const at = panel + g * kPairVectors * kVectorBytes;
    const auto first = Dots::load(at), second = Dots::load(at + kVectorBytes);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const auto factor = Dots::broadcast(static_cast<const char*>(rows) + r * stride + g * kFactorBytes);
      to[r][0] = Dots::add(to[r][0], factor, first);
      to[r][1] = Dots::add(to[r][1], factor, second);
    }
  };
  // A step of one or two rows is so short that else its time depends on where the loop happens to lie in memory.
  constexpr int64_t kSteps = kCount <= 2 ? 4 : kParts;
  int64_t g = 0;
  for (; g + kSteps <= groups; g += kSteps) {
#pragma GCC unroll 4
    for (int64_t step = 0; step < kSteps; ++step) add(g + step, parts[step % kParts]);
  }
  for (; g < groups; ++g) add(g, parts[0]);
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
  add_group_products<PairSums, 1>(rows, stride * 2, panel, pairs, sums);
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

#if AG_HAS_SORTED_PANELS

/// A panel in groups of four, which stand in this order: the first `fits` are multiplied as bytes.
struct SortedGroups {
  const int8_t* panel;
  const uint8_t* order;
  int64_t fits, count;
};

/// sums[r] += row r times the panel. Rows of bytes lie `stride` bytes apart, as do those of 16-bit numbers.
template <int kCount>
HWY_INLINE void add_sorted_products(const uint8_t* bytes, const int16_t* numbers, int64_t stride,
                                    const SortedGroups& groups, PairV (&sums)[kCount][kPairVectors]) {
  constexpr int64_t kGroupBytes = Sorted::kGroup * kPairVectors * HWY_LANES(int32_t), kHalf = kGroupBytes / 2;
  constexpr int64_t kAhead = 2048;  // bytes: see QuadDots
  const __m256i ones = _mm256_set1_epi16(1);
  const auto broadcast = [](const void* from) HWY_ATTR {
    int32_t quad;
    std::memcpy(&quad, from, sizeof(quad));
    return _mm256_set1_epi32(quad);
  };
  const auto add = [](PairV sum, __m256i products) HWY_ATTR {
    asm("vpaddd %1, %0, %0" : "+x"(sum.raw) : "x"(products));
    return sum;
  };
  int64_t g = 0;
  for (; g < groups.fits; ++g) {
    const auto* const at = reinterpret_cast<const __m256i*>(groups.panel + g * kGroupBytes);
    const uint8_t* const factors = bytes + Sorted::kGroup * groups.order[g];
    const __m256i first = _mm256_loadu_si256(at), second = _mm256_loadu_si256(at + 1);
    hwy::Prefetch(groups.panel + g * kGroupBytes + kAhead);
#pragma GCC unroll 12
    for (int r = 0; r < kCount; ++r) {
      const __m256i factor = broadcast(factors + r * stride);
      sums[r][0] = add(sums[r][0], _mm256_madd_epi16(_mm256_maddubs_epi16(factor, first), ones));
      sums[r][1] = add(sums[r][1], _mm256_madd_epi16(_mm256_maddubs_epi16(factor, second), ones));
    }
  }
  for (; g < groups.count; ++g) {
    const auto* const factors = reinterpret_cast<const char*>(numbers + Sorted::kGroup * groups.order[g]);
#pragma GCC unroll 1
    for (int64_t half = 0; half < 2; ++half) {  // with both at once there are not enough registers
      const int8_t* const at = groups.panel + g * kGroupBytes + half * kHalf;
      const __m256i first = load_pairs(at).raw, second = load_pairs(at + kHalf / 2).raw;
#pragma GCC unroll 12
      for (int r = 0; r < kCount; ++r) {
        const __m256i factor = broadcast(factors + r * stride + half * 4);
        sums[r][0] = add(sums[r][0], _mm256_madd_epi16(factor, first));
        sums[r][1] = add(sums[r][1], _mm256_madd_epi16(factor, second));
      }
    }
  }
}

#endif

#if AG_MAY_HAVE_VNNI
/// sums[r] += row r times the panel, for kCount rows of bytes that lie `stride` apart.
template <int kCount>
HWY_INLINE void add_quad_products(const uint8_t* rows, int64_t stride, const int8_t* panel, int64_t quads,
                                  PairV (&sums)[kCount][kPairVectors]) {
  constexpr int kParts = kCount == 1 ? 4 : kCount <= 3 ? 2 : 1;
  add_group_products<QuadDots, kParts>(rows, stride, panel, quads, sums);
}
#endif

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

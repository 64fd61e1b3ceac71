// Between bytes and floats, for every instruction set.
#if defined(AG_SIMD_BYTES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_BYTES_INL_H
#undef AG_SIMD_BYTES_INL_H
#else
#define AG_SIMD_BYTES_INL_H
#endif

#include <array>
#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using ByteFloatD = hn::ScalableTag<float>;
using ByteFloats = hn::Vec<ByteFloatD>;
using ByteIntD = hn::RebindToSigned<ByteFloatD>;

/// Vectors of floats that are written as bytes together.
constexpr int kByteVectors = 4;

/// As many bytes as there are floats in a vector, or these.
template <class Byte>
HWY_INLINE ByteFloats load_bytes(const Byte* from) {
  return hn::ConvertTo(ByteFloatD(), hn::PromoteTo(ByteIntD(), hn::LoadU(hn::Rebind<Byte, ByteIntD>(), from)));
}

HWY_INLINE ByteFloats load_bytes(const float* from) { return hn::LoadU(ByteFloatD(), from); }

/// round(v) + zero, which must fit a byte. Halves go to even numbers.
HWY_INLINE hn::Vec<ByteIntD> round_to_bytes(ByteFloats v, int32_t zero) {
  // Such a number has no bits left for fractions; its last bits are an integer.
  constexpr float kWhole = 12582912.0F;
  constexpr int32_t kBitsOfWhole = 0x4B400000;
  const auto bits = hn::BitCast(ByteIntD(), hn::Add(v, hn::Set(ByteFloatD(), kWhole)));
  return hn::Add(bits, hn::Set(ByteIntD(), zero - kBitsOfWhole));
}

/// Writes one vector of round(v) + zero, which must fit.
template <class Byte>
HWY_INLINE void store_bytes(ByteFloats v, int32_t zero, Byte* to) {
  const hn::Rebind<Byte, ByteIntD> d;
  hn::StoreU(hn::DemoteTo(d, round_to_bytes(v, zero)), d, to);
}

/// As store_bytes(), kByteVectors of them.
template <class Byte>
HWY_INLINE void store_bytes(const std::array<ByteFloats, kByteVectors>& v, int32_t zero, Byte* to) {
#if HWY_TARGET == HWY_AVX2
  const __m256i low = _mm256_packs_epi32(round_to_bytes(v[0], zero).raw, round_to_bytes(v[1], zero).raw);
  const __m256i high = _mm256_packs_epi32(round_to_bytes(v[2], zero).raw, round_to_bytes(v[3], zero).raw);
  const __m256i bytes = std::is_signed_v<Byte> ? _mm256_packs_epi16(low, high) : _mm256_packus_epi16(low, high);
  // Each step has put halves of two vectors side by side.
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permutevar8x32_epi32(bytes, order));
#else
  for (size_t i = 0; i < kByteVectors; ++i) store_bytes(v[i], zero, to + i * hn::Lanes(ByteFloatD()));
#endif
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

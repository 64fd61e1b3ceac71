// Powers of f32 with any exponent, for every instruction set that Highway compiles this header for. They are computed
// in f64, as the exponent of 2 that the logarithm becomes has up to 8 bits before its point; rounded once, the result
// is within 0.51 units in the last place. Zeros, infinities and NaN are as in the C library.
#if defined(AG_SIMD_POWER_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_POWER_INL_H
#undef AG_SIMD_POWER_INL_H
#else
#define AG_SIMD_POWER_INL_H
#endif

#include <cmath>

#include <hwy/highway.h>
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

#if HWY_HAVE_FLOAT64

// Base 2 logarithm of positive normal numbers, to 2^-37 of it, and exactly 0 at 1.
template <class DD, class V = hn::Vec<DD>>
HWY_INLINE V log2_f64(DD d, V x) {
  const hn::RebindToUnsigned<DD> du;
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2)): behind this shift the high bits count from a power of two.
  const auto root = hn::Set(du, 0x3FE6A09E667F3BCDULL);
  const auto bits = hn::Add(hn::Sub(hn::BitCast(du, x), root), hn::Set(du, 1023ULL << 52));
  const auto mantissa = hn::Add(hn::And(bits, hn::Set(du, (1ULL << 52) - 1)), root);
  // 2^52 + k has k in its low bits.
  const auto exponent = hn::Or(hn::ShiftRight<52>(bits), hn::Set(du, 0x4330000000000000ULL));
  const V e = hn::Sub(hn::BitCast(d, exponent), hn::Set(d, 0x1.0p52 + 1023));
  const V one = hn::Set(d, 1.0);
  const V m = hn::BitCast(d, mantissa);
  const V s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  // 2 / ln(2) * atanh(s) / s
  const V w = hn::Mul(s, s);
  const V w2 = hn::Mul(w, w);
  const V low = hn::MulAdd(hn::Set(d, 0x1.ec709d12293b3p-1), w, hn::Set(d, 0x1.71547652bee6fp+1));
  const V high = hn::MulAdd(hn::Set(d, 0x1.a58d4740eb1b7p-2), w, hn::Set(d, 0x1.2777806cde652p-1));
  const V p = hn::MulAdd(hn::MulAdd(hn::Set(d, 0x1.5ced4be39dff6p-2), w2, high), w2, low);
  return hn::MulAdd(p, s, e);
}

// 2^x to 2^-34 of it; beyond f32 at both ends it is 2^200 or 2^-200, and anything at NaN.
template <class DD, class V = hn::Vec<DD>>
HWY_INLINE V exp2_f64(DD d, V x) {
  const hn::RebindToUnsigned<DD> du;
  const V bounded = hn::Max(hn::Min(x, hn::Set(d, 200.0)), hn::Set(d, -200.0));
  const V shift = hn::Set(d, 0x1.8p52);  // adding it rounds to a whole number, which then stands in the low bits
  const V shifted = hn::Add(bounded, shift);
  const V f = hn::Sub(bounded, hn::Sub(shifted, shift));
  // By pairs, for short chains.
  const V f2 = hn::Mul(f, f);
  const V p0 = hn::MulAdd(hn::Set(d, 0x1.62e42ff0e1934p-1), f, hn::Set(d, 1.0));
  const V p2 = hn::MulAdd(hn::Set(d, 0x1.c6b08ac06a6a2p-5), f, hn::Set(d, 0x1.ebfbe077873afp-3));
  const V p4 = hn::MulAdd(hn::Set(d, 0x1.5d8a8600016a7p-10), f, hn::Set(d, 0x1.3b29f39d3f0e7p-7));
  const V p6 = hn::MulAdd(hn::Set(d, 0x1.fde5fc9980c8bp-17), f, hn::Set(d, 0x1.445c840dce4e0p-13));
  const V p = hn::MulAdd(hn::MulAdd(p6, f2, p4), hn::Mul(f2, f2), hn::MulAdd(p2, f2, p0));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, p), hn::ShiftLeft<52>(hn::BitCast(du, shifted))));
}

// x^y of vectors of as many elements in f32 as in f64, x > 0 and finite, y finite.
template <class DD, class VF>
HWY_INLINE VF pow_by_f64(DD dd, VF x, VF y) {
  const hn::Rebind<float, DD> df;
  const auto power = exp2_f64(dd, hn::Mul(hn::PromoteTo(dd, y), log2_f64(dd, hn::PromoteTo(dd, x))));
#if HWY_TARGET == HWY_SCALAR
  // There DemoteTo stops at the largest finite number; from half a unit above it on, the result is infinite.
  if (hn::GetLane(power) >= 0x1.ffffffp127) return hn::Set(df, kInfinity);
#endif
  return hn::DemoteTo(df, power);
}

// x^y for x > 0 and finite, y finite.
template <class D, class V>
HWY_INLINE V pow_positive([[maybe_unused]] D d, V x, V y) {
#if HWY_TARGET == HWY_SCALAR
  return pow_by_f64(hn::Rebind<double, D>(), x, y);
#else
  const hn::Repartition<double, D> dd;
  const hn::Half<D> half;
  const auto low = pow_by_f64(dd, hn::LowerHalf(half, x), hn::LowerHalf(half, y));
  return hn::Combine(d, pow_by_f64(dd, hn::UpperHalf(half, x), hn::UpperHalf(half, y)), low);
#endif
}

/// x^y for every x and y.
template <class D, class V>
HWY_INLINE V pow(D d, V x, V y) {
  const V zero = hn::Zero(d), one = hn::Set(d, 1.0F), infinity = hn::Set(d, kInfinity);
  const V half = hn::Set(d, 0.5F), nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const V a = hn::Abs(x);
  V power = pow_positive(d, a, y);
  // Infinite exponents keep the product's sign, so that only where it is 0 * inf something is left to do below.
  const auto a_is_zero = hn::Eq(a, zero);
  const auto a_is_end = hn::Or(a_is_zero, hn::Eq(a, infinity));
  const V inverse = hn::IfThenElse(a_is_zero, infinity, zero);
  power = hn::IfThenElse(a_is_end, hn::IfThenElse(hn::Lt(y, zero), inverse, a), power);
  power = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), nan, power);
  // Of whole numbers 1 / 2 tells the odd ones; infinities and all from 2^24 on count as even.
  const V half_y = hn::Mul(y, half);
  const auto is_whole = hn::Eq(hn::Round(y), y);
  const auto is_odd = hn::AndNot(hn::Eq(hn::Round(half_y), half_y), is_whole);
  const V sign = hn::And(x, hn::Set(d, -0.0F));
  power = hn::Or(power, hn::IfThenElseZero(is_odd, sign));
  const auto has_no_power = hn::AndNot(is_whole, hn::And(hn::Lt(x, zero), hn::Lt(a, infinity)));
  power = hn::IfThenElse(has_no_power, nan, power);
  // 1^NaN and NaN^0 too, and (-1)^inf.
  const auto is_one = hn::And(hn::Eq(a, one), hn::Eq(hn::Abs(y), infinity));
  return hn::IfThenElse(hn::Or(is_one, hn::Or(hn::Eq(x, one), hn::Eq(y, zero))), one, power);
}

#else

// Without vectors of f64, one by one.
template <class D, class V>
HWY_INLINE V pow(D d, V x, V y) {
  HWY_ALIGN float bases[hn::MaxLanes(d)];
  HWY_ALIGN float exponents[hn::MaxLanes(d)];
  hn::Store(x, d, bases);
  hn::Store(y, d, exponents);
  for (size_t i = 0; i < hn::Lanes(d); ++i) bases[i] = std::pow(bases[i], exponents[i]);
  return hn::Load(d, bases);
}

#endif

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

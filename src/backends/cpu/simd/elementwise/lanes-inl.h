// The formulas of elementwise ops on vectors of f32, for every instruction set that Highway compiles this header for.
#if defined(AG_SIMD_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_LANES_INL_H
#undef AG_SIMD_LANES_INL_H
#else
#define AG_SIMD_LANES_INL_H
#endif

#include <hwy/highway.h>
#include "backends/cpu/simd/power-inl.h"
#include "backends/cpu/simd/trigonometry-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/elementwise/formula/formula_info.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

/// One answer for each element of a Lanes.
struct Answers {
  hn::Mask<hn::ScalableTag<float>> mask;
};

/// A vector of f32 as a number that formulas compute with.
struct Lanes {
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;

  HWY_INLINE explicit Lanes(V vector) : v(vector) {}
  HWY_INLINE explicit Lanes(float number) : v(hn::Set(D(), number)) {}
  HWY_INLINE explicit Lanes(double number) : Lanes(static_cast<float>(number)) {}
  HWY_INLINE explicit Lanes(int number) : Lanes(static_cast<float>(number)) {}

  friend HWY_INLINE Lanes operator+(Lanes a, Lanes b) { return Lanes(hn::Add(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a, Lanes b) { return Lanes(hn::Sub(a.v, b.v)); }
  friend HWY_INLINE Lanes operator*(Lanes a, Lanes b) { return Lanes(hn::Mul(a.v, b.v)); }
  friend HWY_INLINE Lanes operator/(Lanes a, Lanes b) { return Lanes(hn::Div(a.v, b.v)); }
  friend HWY_INLINE Lanes operator-(Lanes a) { return Lanes(hn::Neg(a.v)); }
  friend HWY_INLINE Answers operator<(Lanes a, Lanes b) { return {hn::Lt(a.v, b.v)}; }
  friend HWY_INLINE Answers operator<=(Lanes a, Lanes b) { return {hn::Le(a.v, b.v)}; }
  friend HWY_INLINE Answers operator>(Lanes a, Lanes b) { return {hn::Gt(a.v, b.v)}; }
  friend HWY_INLINE Answers operator>=(Lanes a, Lanes b) { return {hn::Ge(a.v, b.v)}; }
  friend HWY_INLINE Answers operator==(Lanes a, Lanes b) { return {hn::Eq(a.v, b.v)}; }
  // hn::Ne is false for NaN on AVX-512; NaN is equal to nothing.
  friend HWY_INLINE Answers operator!=(Lanes a, Lanes b) { return {hn::Not(hn::Eq(a.v, b.v))}; }

  V v;
};

HWY_INLINE Answers is_nan(Lanes x) { return {hn::IsNaN(x.v)}; }
HWY_INLINE Answers both(Answers a, Answers b) { return {hn::And(a.mask, b.mask)}; }
HWY_INLINE Answers either(Answers a, Answers b) { return {hn::Or(a.mask, b.mask)}; }
HWY_INLINE Lanes select(Answers condition, Lanes a, Lanes b) { return Lanes(hn::IfThenElse(condition.mask, a.v, b.v)); }
HWY_INLINE Lanes at_least(Lanes x, Lanes bound) { return Lanes(at_least(Lanes::D(), bound.v, x.v)); }
HWY_INLINE Lanes at_most(Lanes x, Lanes bound) { return Lanes(at_most(Lanes::D(), bound.v, x.v)); }
HWY_INLINE Lanes max_nan(Lanes a, Lanes b) { return select(is_nan(b), b, select(a < b, b, a)); }
HWY_INLINE Lanes min_nan(Lanes a, Lanes b) { return select(is_nan(b), b, select(b < a, b, a)); }
HWY_INLINE Lanes mul_add(Lanes a, Lanes b, Lanes c) { return Lanes(hn::MulAdd(a.v, b.v, c.v)); }
HWY_INLINE Lanes abs(Lanes x) { return Lanes(hn::Abs(x.v)); }
HWY_INLINE Lanes sqrt(Lanes x) { return Lanes(hn::Sqrt(x.v)); }
HWY_INLINE Lanes floor(Lanes x) { return Lanes(hn::Floor(x.v)); }
HWY_INLINE Lanes ceil(Lanes x) { return Lanes(hn::Ceil(x.v)); }
HWY_INLINE Lanes round(Lanes x) { return Lanes(hn::Round(x.v)); }
HWY_INLINE Lanes exp(Lanes x) { return Lanes(exp(Lanes::D(), x.v)); }
HWY_INLINE Lanes exp_nonpositive(Lanes x) { return Lanes(exp_nonpositive(Lanes::D(), x.v)); }
HWY_INLINE Lanes expm1_nonpositive(Lanes x) { return Lanes(expm1_nonpositive(Lanes::D(), at_most(x, Lanes(0)).v)); }
HWY_INLINE Lanes expm1(Lanes x) { return select(x > Lanes(0), exp(x) - Lanes(1), expm1_nonpositive(x)); }
HWY_INLINE Lanes log(Lanes x) { return Lanes(log(Lanes::D(), x.v)); }
HWY_INLINE Lanes log1p_unit(Lanes x) { return Lanes(log1p_unit(Lanes::D(), x.v)); }
HWY_INLINE Lanes erf(Lanes x) { return Lanes(erf(Lanes::D(), x.v)); }
HWY_INLINE Lanes erfc(Lanes x) { return Lanes(erfc(Lanes::D(), x.v)); }
HWY_INLINE Lanes tanh(Lanes x) { return Lanes(tanh(Lanes::D(), x.v)); }
HWY_INLINE Lanes sin(Lanes x) { return Lanes(sin(Lanes::D(), x.v)); }
HWY_INLINE Lanes cos(Lanes x) { return Lanes(cos(Lanes::D(), x.v)); }
HWY_INLINE Lanes pow(Lanes a, Lanes b) { return Lanes(pow(Lanes::D(), a.v, b.v)); }

namespace formulas {
#include "ops/elementwise/formula/formulas-inl.h"

template <class F, class... T>
concept HasFast = requires(T... x) {
  F::fast(x...);
};

/// What kernels compute for F: its fast form where it has one.
template <class F, class... T>
HWY_INLINE auto fast(T... x) {
  if constexpr (HasFast<F, T...>) {
    return F::fast(x...);
  } else {
    return F::of(x...);
  }
}
template <>
HWY_INLINE auto fast<Sigmoid>(Lanes x) {
  return Lanes(sigmoid(Lanes::D(), x.v));
}
}  // namespace formulas

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

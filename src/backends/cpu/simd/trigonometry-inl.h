// Sine and cosine on vectors of f32, for every instruction set that Highway compiles this header for.
#if defined(AG_SIMD_TRIGONOMETRY_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_TRIGONOMETRY_INL_H
#undef AG_SIMD_TRIGONOMETRY_INL_H
#else
#define AG_SIMD_TRIGONOMETRY_INL_H
#endif

#include <cmath>

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// `by_vector` for what Highway's functions take (three units in the last place); the C library's for a vector in which
// anything is larger, infinite or NaN.
template <class D, class V, class ByVector, class ByElement>
HWY_INLINE V in_reach(D d, V x, const ByVector& by_vector, const ByElement& by_element) {
  constexpr float kReach = 39000;
  if (HWY_LIKELY(hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, kReach))))) return by_vector(x);
  HWY_ALIGN float elements[hn::MaxLanes(d)];
  hn::Store(x, d, elements);
  for (size_t i = 0; i < hn::Lanes(d); ++i) elements[i] = by_element(elements[i]);
  return hn::Load(d, elements);
}

/// Sine of every x, in radians.
template <class D, class V>
HWY_INLINE V sin(D d, V x) {
  return in_reach(
      d, x, [d](V v) HWY_ATTR { return hn::Sin(d, v); }, [](float v) { return std::sin(v); });
}

/// Cosine of every x, in radians.
template <class D, class V>
HWY_INLINE V cos(D d, V x) {
  return in_reach(
      d, x, [d](V v) HWY_ATTR { return hn::Cos(d, v); }, [](float v) { return std::cos(v); });
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

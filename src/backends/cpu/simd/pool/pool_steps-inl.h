// What a pool does with each element of a window, for every instruction set.
#if defined(AG_SIMD_POOL_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_POOL_STEPS_INL_H
#undef AG_SIMD_POOL_STEPS_INL_H
#else
#define AG_SIMD_POOL_STEPS_INL_H
#endif

#include <hwy/highway.h>
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using PoolD = hn::ScalableTag<float>;
using PoolV = hn::Vec<PoolD>;

HWY_INLINE int64_t lanes_of_pool() { return static_cast<int64_t>(hn::Lanes(PoolD())); }

/// The largest element; NaN wins, and stays.
struct MaxStep {
  static constexpr float kStart = -kInfinity;
  static HWY_INLINE PoolV add(PoolV total, PoolV x) {
    return hn::IfThenElse(hn::IsNaN(total), total, at_least(PoolD(), total, x));
  }
  static HWY_INLINE PoolV finish(PoolV total, PoolV) { return total; }
  static HWY_INLINE bool holds(PoolV) { return true; }
};

/// The sum of all elements, `part` of it at the end; what is beyond f32 does not hold.
struct MeanStep {
  static constexpr float kStart = 0;
  static HWY_INLINE PoolV add(PoolV total, PoolV x) { return hn::Add(total, x); }
  static HWY_INLINE PoolV finish(PoolV total, PoolV part) { return hn::Mul(total, part); }
  static HWY_INLINE bool holds(PoolV total) {
    return hn::AllTrue(PoolD(), hn::Lt(hn::Abs(total), hn::Set(PoolD(), kInfinity)));
  }
};

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

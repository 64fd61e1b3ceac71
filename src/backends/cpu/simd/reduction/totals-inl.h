// Totals of rows: sums and products of f32 elements in f64, and largest and smallest elements with NaN kept.
#if defined(AG_SIMD_TOTALS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_TOTALS_INL_H
#undef AG_SIMD_TOTALS_INL_H
#else
#define AG_SIMD_TOTALS_INL_H
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include <hwy/highway.h>
#include "backends/cpu/reduction/reduced_axes.h"
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f32 elements that are widened to f64. The classes derived from it say how they are added to a total.
struct Wide {
  using T = double;
  using D = hn::ScalableTag<double>;
  using Narrow = hn::Rebind<float, D>;
  using V = hn::Vec<D>;
  static V load(const float* x) { return hn::PromoteTo(D(), hn::LoadU(Narrow(), x)); }
  static V load_first(const float* x, size_t count, double padding) {
    const Narrow d;
    return hn::PromoteTo(D(), load_some(d, x, count, hn::Set(d, static_cast<float>(padding))));
  }
};

struct SumOf : Wide {
  static constexpr double kNothing = 0;
  static V step(V total, V x) { return hn::Add(total, x); }
  static V merge(V a, V b) { return hn::Add(a, b); }
  static double of_lanes(V v) { return hn::GetLane(hn::SumOfLanes(D(), v)); }
};

struct SumOfMagnitudes : SumOf {
  static V step(V total, V x) { return hn::Add(total, hn::Abs(x)); }
};

struct SumOfSquares : SumOf {
  static V step(V total, V x) { return hn::MulAdd(x, x, total); }
};

struct ProductOf : Wide {
  static constexpr double kNothing = 1;
  static V step(V total, V x) { return hn::Mul(total, x); }
  static V merge(V a, V b) { return hn::Mul(a, b); }
  static double of_lanes(V v) {
    HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
    hn::Store(v, D(), lanes);
    double product = 1;
    for (size_t i = 0; i < hn::Lanes(D()); ++i) product *= lanes[i];
    return product;
  }
};

struct Plain {
  using T = float;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  static V load(const float* x) { return hn::LoadU(D(), x); }
  static V load_first(const float* x, size_t count, float padding) {
    return load_some(D(), x, count, hn::Set(D(), padding));
  }
  static V nan() { return hn::Set(D(), std::numeric_limits<float>::quiet_NaN()); }
};

struct LargestOf : Plain {
  static constexpr float kNothing = -kInfinity;
  static V step(V total, V x) { return hn::IfThenElse(hn::IsNaN(total), total, at_least(D(), total, x)); }
  static V merge(V a, V b) { return step(a, b); }
  static float of_lanes(V v) {
    if (!hn::AllFalse(D(), hn::IsNaN(v))) return hn::GetLane(nan());
    return hn::GetLane(hn::MaxOfLanes(D(), v));
  }
};

struct SmallestOf : Plain {
  static constexpr float kNothing = kInfinity;
  static V step(V total, V x) { return hn::IfThenElse(hn::IsNaN(total), total, at_most(D(), total, x)); }
  static V merge(V a, V b) { return step(a, b); }
  static float of_lanes(V v) {
    if (!hn::AllFalse(D(), hn::IsNaN(v))) return hn::GetLane(nan());
    return hn::GetLane(hn::MinOfLanes(D(), v));
  }
};

// The runs of a group to one element.
template <class P>
HWY_INLINE typename P::T total_of_rows(const ReducedAxes& axes, const float* x) {
  const typename P::D d;
  const size_t lanes = hn::Lanes(d);
  const auto count = static_cast<size_t>(axes.run);
  // Four totals, because a step takes four cycles or more.
  auto t0 = hn::Set(d, P::kNothing), t1 = t0, t2 = t0, t3 = t0;
  for (const int64_t offset : axes.offsets) {
    const float* row = x + offset;
    size_t i = 0;
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      t0 = P::step(t0, P::load(row + i));
      t1 = P::step(t1, P::load(row + i + lanes));
      t2 = P::step(t2, P::load(row + i + 2 * lanes));
      t3 = P::step(t3, P::load(row + i + 3 * lanes));
    }
    for (; i + lanes <= count; i += lanes) t0 = P::step(t0, P::load(row + i));
    if (i < count) t1 = P::step(t1, P::load_first(row + i, count - i, P::kNothing));
  }
  return P::of_lanes(P::merge(P::merge(t0, t1), P::merge(t2, t3)));
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

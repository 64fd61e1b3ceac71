// ConvStep on vectors.
#if defined(AG_SIMD_CONV_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_CONV_STEPS_INL_H
#undef AG_SIMD_CONV_STEPS_INL_H
#else
#define AG_SIMD_CONV_STEPS_INL_H
#endif

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/conv_steps.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls for_all(f), which must replace every vector v by f(v, residual), where residual() is what may be added to it.
template <class D, class ForAll>
HWY_INLINE void apply_conv_step(D d, const ConvStep& step, const ForAll& for_all) {
  using V = hn::Vec<D>;
  const V p = hn::Set(d, step.p);
  const V q = hn::Set(d, step.q);
  switch (step.kind) {
    case ConvStep::Kind::add_residual:
      return for_all([&](V v, const auto& residual) HWY_ATTR { return hn::Add(v, residual()); });
    case ConvStep::Kind::add_number: return for_all([&](V v, const auto&) HWY_ATTR { return hn::Add(v, p); });
    case ConvStep::Kind::scale: return for_all([&](V v, const auto&) HWY_ATTR { return hn::Mul(v, p); });
    case ConvStep::Kind::hard_sigmoid:
      return for_all([&](V v, const auto&) HWY_ATTR { return clamp_unit(d, hn::MulAdd(p, v, q)); });
    case ConvStep::Kind::clip:
      return for_all([&](V v, const auto&) HWY_ATTR { return at_most(d, q, at_least(d, p, v)); });
    case ConvStep::Kind::hard_swish: return for_all([&](V v, const auto&) HWY_ATTR { return hard_swish(d, v); });
    case ConvStep::Kind::swish: return for_all([&](V v, const auto&) HWY_ATTR { return fast_swish(d, v, p); });
    case ConvStep::Kind::leaky_relu:
      return for_all([&](V v, const auto&)
                         HWY_ATTR { return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), hn::Mul(v, p), v); });
    case ConvStep::Kind::elu:
      return for_all([&](V v, const auto&) HWY_ATTR {
        const V below = hn::Mul(p, expm1_nonpositive(d, at_most(d, hn::Zero(d), v)));
        return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), below, v);
      });
    case ConvStep::Kind::sigmoid: return for_all([&](V v, const auto&) HWY_ATTR { return sigmoid(d, v); });
    case ConvStep::Kind::tanh: return for_all([&](V v, const auto&) HWY_ATTR { return tanh(d, v); });
    case ConvStep::Kind::gelu: return for_all([&](V v, const auto&) HWY_ATTR { return fast_gelu(d, v); });
    case ConvStep::Kind::gelu_tanh: return for_all([&](V v, const auto&) HWY_ATTR { return fast_gelu_tanh(d, v); });
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

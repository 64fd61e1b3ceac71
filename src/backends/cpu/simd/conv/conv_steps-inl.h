// ConvStep on vectors.
#if defined(AG_SIMD_CONV_STEPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_CONV_STEPS_INL_H
#undef AG_SIMD_CONV_STEPS_INL_H
#else
#define AG_SIMD_CONV_STEPS_INL_H
#endif

#include <hwy/highway.h>
#include <type_traits>
#include "backends/cpu/simd/conv/conv_steps.h"
#include "backends/cpu/simd/elementwise/lanes-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Calls for_all(f), which must replace every vector v by f(v, residual), where residual() is what may be added to it
/// or multiplied.
template <class D, class ForAll>
HWY_INLINE void apply_conv_step(D d, const ConvStep& step, const ForAll& for_all) {
  static_assert(std::is_same_v<D, Lanes::D>);
  using V = hn::Vec<D>;
  const V p = hn::Set(d, step.p);
  const V q = hn::Set(d, step.q);
  const auto map = [&](const auto& f) HWY_ATTR { for_all([&](V v, const auto&) HWY_ATTR { return f(v); }); };
  const auto by_formula = [&]<class F, class... P>(F, P... parameters) HWY_ATTR {
    map([&](V v) HWY_ATTR { return formulas::fast<F>(Lanes(v), Lanes(parameters)...).v; });
  };
  switch (step.kind) {
    case ConvStep::Kind::add_residual:
      return for_all([&](V v, const auto& residual) HWY_ATTR { return hn::Add(v, residual()); });
    case ConvStep::Kind::times_residual:
      return for_all([&](V v, const auto& residual) HWY_ATTR { return hn::Mul(v, residual()); });
    case ConvStep::Kind::clip: return map([&](V v) HWY_ATTR { return at_most(d, q, at_least(d, p, v)); });
    case ConvStep::Kind::add_number: return by_formula(formulas::Add(), p);
    case ConvStep::Kind::scale: return by_formula(formulas::Scale(), p);
    case ConvStep::Kind::hard_sigmoid: return by_formula(formulas::HardSigmoid(), p, q);
    case ConvStep::Kind::hard_swish: return by_formula(formulas::HardSwish());
    case ConvStep::Kind::leaky_relu: return by_formula(formulas::LeakyRelu(), p);
    case ConvStep::Kind::elu: return by_formula(formulas::Elu(), p);
    case ConvStep::Kind::sigmoid: return by_formula(formulas::Sigmoid());
    case ConvStep::Kind::tanh: return by_formula(formulas::Tanh());
    // Forms without divisions, which take as long as all the rest of these.
    case ConvStep::Kind::swish: return map([&](V v) HWY_ATTR { return fast_swish(d, v, p); });
    case ConvStep::Kind::gelu: return map([&](V v) HWY_ATTR { return fast_gelu(d, v); });
    case ConvStep::Kind::gelu_tanh: return map([&](V v) HWY_ATTR { return fast_gelu_tanh(d, v); });
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

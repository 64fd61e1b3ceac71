#include "backends/cpu/simd/elementwise/activation_pass.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/elementwise/activation_pass.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y = f(y), or f(y) + residual.
template <class D, class F>
void map_and_add(D d, float* y, size_t size, const float* residual, const F& f) {
  if (!residual) return map_row(d, y, y, size, [&](auto v, size_t, size_t) HWY_ATTR { return f(v); });
  map_row(d, y, y, size, [&](auto v, size_t i, size_t n) HWY_ATTR {
    const bool is_whole = n == hn::Lanes(d);
    const auto added = is_whole ? hn::LoadU(d, residual + i) : load_some(d, residual + i, n, hn::Zero(d));
    return hn::Add(f(v), added);
  });
}

void run_pass(const ActivationPass& pass, float* y, int64_t count, const float* residual) {
  using Kind = ActivationPass::Kind;
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const auto map = [&](const auto& f) { map_and_add(d, y, static_cast<size_t>(count), residual, f); };
  const V alpha = hn::Set(d, pass.alpha);
  switch (pass.kind) {
    case Kind::none:
      if (residual) map([](V v) HWY_ATTR { return v; });
      return;
    case Kind::gelu: return map([&](V v) HWY_ATTR { return fast_gelu(d, v); });
    case Kind::gelu_tanh: return map([&](V v) HWY_ATTR { return fast_gelu_tanh(d, v); });
    case Kind::elu:
      return map([&](V v) HWY_ATTR {
        const V below = hn::Mul(alpha, expm1_nonpositive(d, at_most(d, hn::Zero(d), v)));
        return hn::IfThenElse(hn::Lt(v, hn::Zero(d)), below, v);
      });
    case Kind::swish: return map([&](V v) HWY_ATTR { return fast_swish(d, v, alpha); });
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(run_pass);

void run_activation(const ActivationPass& pass, float* y, int64_t count, const float* residual) {
  HWY_DYNAMIC_DISPATCH(run_pass)(pass, y, count, residual);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

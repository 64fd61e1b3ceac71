// Rows of gates, vector by vector, for gradients of recurrent layers.
#if defined(AG_GATE_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_GATE_LANES_INL
#undef AG_GATE_LANES_INL
#else
#define AG_GATE_LANES_INL
#endif

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using GateD = hn::ScalableTag<float>;
using GateV = hn::Vec<GateD>;

// Calls step(load, store, at) for all lanes of a row; both take an address and leave what lies behind the row alone.
template <class Step>
HWY_INLINE void for_lanes(int64_t count, const Step& step) {
  const GateD d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t at = 0;
  for (; at + lanes <= count; at += lanes) {
    step([](const float* from) HWY_ATTR { return hn::LoadU(GateD(), from); },
         [](GateV v, float* to) HWY_ATTR { hn::StoreU(v, GateD(), to); }, at);
  }
  if (at == count) return;
  const auto rest = static_cast<size_t>(count - at);
  step([rest](const float* from) HWY_ATTR { return load_some(GateD(), from, rest, hn::Zero(GateD())); },
       [rest](GateV v, float* to) HWY_ATTR { store_some(GateD(), v, to, rest); }, at);
}

// x (1 - x)
HWY_INLINE GateV slope(GateV x) { return hn::NegMulAdd(x, x, x); }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard

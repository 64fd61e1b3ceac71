// Loading and storing the ends of rows, and sums over rows, for every instruction set.
#if defined(AG_SIMD_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef AG_SIMD_ROWS_INL_H
#undef AG_SIMD_ROWS_INL_H
#else
#define AG_SIMD_ROWS_INL_H
#endif

#include <algorithm>
#include <cstddef>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Do masked loads and stores leave alone what the mask hides, and without a fault?
#define AG_HAS_MASKED_MEMORY (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

/// The first `count` < Lanes(d) elements at `from`; the other lanes hold `padding`.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V load_some(D d, const float* from, size_t count, V padding) {
#if AG_HAS_MASKED_MEMORY
  const auto mask = hn::FirstN(d, count);
  return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, from), padding);
#else
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(padding, d, buffer);
  for (size_t i = 0; i < count; ++i) buffer[i] = from[i];
  return hn::Load(d, buffer);
#endif
}

/// The first `count` < Lanes(d) elements of `v` to `to`.
template <class D, class V>
HWY_INLINE void store_some(D d, V v, float* to, size_t count) {
#if AG_HAS_MASKED_MEMORY
  hn::BlendedStore(v, hn::FirstN(d, count), d, to);
#else
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(v, d, buffer);
  for (size_t i = 0; i < count; ++i) to[i] = buffer[i];
#endif
}

/// y[i] = f(x[i]) for a row.
template <class D, class F>
HWY_INLINE void map_row(D d, const float* x, float* y, size_t count, const F& f) {
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, x + i), i, lanes), d, y + i);
  if (i < count) store_some(d, f(load_some(d, x + i, count - i, hn::Zero(d)), i, count - i), y + i, count - i);
}

/// Sum of f(x[i]); f(padding) must be 0. Blocks are added up in f64, so that the error does not grow with the row.
template <class D, class F>
HWY_INLINE double sum_row(D d, const float* x, size_t count, hn::Vec<D> padding, const F& f) {
  constexpr size_t kBlock = 1024;
  const size_t lanes = hn::Lanes(d);
  double total = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    // Four sums, because an addition takes four cycles.
    auto s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    size_t i = begin;
    for (; i + 4 * lanes <= end; i += 4 * lanes) {
      s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
      s1 = hn::Add(s1, f(hn::LoadU(d, x + i + lanes)));
      s2 = hn::Add(s2, f(hn::LoadU(d, x + i + 2 * lanes)));
      s3 = hn::Add(s3, f(hn::LoadU(d, x + i + 3 * lanes)));
    }
    for (; i + lanes <= end; i += lanes) s0 = hn::Add(s0, f(hn::LoadU(d, x + i)));
    if (i < end) s1 = hn::Add(s1, f(load_some(d, x + i, end - i, padding)));
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)))));
  }
  return total;
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per target

// Written with named vectors instead of arrays of them, which scalable instruction sets do not allow. Twelve chains
// cover two units with a latency of six cycles and leave room in sixteen registers.
#include "backends/cpu/machine/peak_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/machine/peak_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// x -> x / 2 + 1 stays near 2: no infinities and no denormals, which would be slow.
float fma_loop(size_t iterations) {
  const hn::ScalableTag<float> d;
  const auto half = hn::Set(d, 0.5F);
  const auto one = hn::Set(d, 1.0F);
  auto a = hn::Iota(d, 0), b = hn::Iota(d, 1), c = hn::Iota(d, 2), e = hn::Iota(d, 3);
  auto f = hn::Iota(d, 4), g = hn::Iota(d, 5), h = hn::Iota(d, 6), i = hn::Iota(d, 7);
  auto j = hn::Iota(d, 8), k = hn::Iota(d, 9), l = hn::Iota(d, 10), m = hn::Iota(d, 11);
  for (size_t n = 0; n < iterations; ++n) {
    a = hn::MulAdd(a, half, one);
    b = hn::MulAdd(b, half, one);
    c = hn::MulAdd(c, half, one);
    e = hn::MulAdd(e, half, one);
    f = hn::MulAdd(f, half, one);
    g = hn::MulAdd(g, half, one);
    h = hn::MulAdd(h, half, one);
    i = hn::MulAdd(i, half, one);
    j = hn::MulAdd(j, half, one);
    k = hn::MulAdd(k, half, one);
    l = hn::MulAdd(l, half, one);
    m = hn::MulAdd(m, half, one);
  }
  const auto left = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  const auto right = hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(left, right)));
}

float read_loop(const float* HWY_RESTRICT data, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  auto f = hn::Zero(d), g = hn::Zero(d), h = hn::Zero(d), i = hn::Zero(d);
  for (size_t n = 0; n + 8 * lanes <= count; n += 8 * lanes) {
    a = hn::Add(a, hn::Load(d, data + n));
    b = hn::Add(b, hn::Load(d, data + n + lanes));
    c = hn::Add(c, hn::Load(d, data + n + 2 * lanes));
    e = hn::Add(e, hn::Load(d, data + n + 3 * lanes));
    f = hn::Add(f, hn::Load(d, data + n + 4 * lanes));
    g = hn::Add(g, hn::Load(d, data + n + 5 * lanes));
    h = hn::Add(h, hn::Load(d, data + n + 6 * lanes));
    i = hn::Add(i, hn::Load(d, data + n + 7 * lanes));
  }
  const auto left = hn::Add(hn::Add(a, b), hn::Add(c, e));
  const auto right = hn::Add(hn::Add(f, g), hn::Add(h, i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(left, right)));
}

void copy_loop(const float* HWY_RESTRICT from, float* HWY_RESTRICT to, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t n = 0; n + 4 * lanes <= count; n += 4 * lanes) {
    const auto a = hn::Load(d, from + n);
    const auto b = hn::Load(d, from + n + lanes);
    const auto c = hn::Load(d, from + n + 2 * lanes);
    const auto e = hn::Load(d, from + n + 3 * lanes);
    hn::Store(a, d, to + n);
    hn::Store(b, d, to + n + lanes);
    hn::Store(c, d, to + n + 2 * lanes);
    hn::Store(e, d, to + n + 3 * lanes);
  }
}

double flops_per_iteration() { return 12.0 * 2.0 * static_cast<double>(hn::Lanes(hn::ScalableTag<float>())); }

std::string isa() { return hwy::TargetName(HWY_TARGET); }

}  // namespace autograph::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph {

HWY_EXPORT(fma_loop);
HWY_EXPORT(read_loop);
HWY_EXPORT(copy_loop);
HWY_EXPORT(flops_per_iteration);
HWY_EXPORT(isa);

float run_fma_loop(size_t iterations) { return HWY_DYNAMIC_DISPATCH(fma_loop)(iterations); }

double fma_loop_flops() { return HWY_DYNAMIC_DISPATCH(flops_per_iteration)(); }

float run_read_loop(const float* data, size_t count) { return HWY_DYNAMIC_DISPATCH(read_loop)(data, count); }

void run_copy_loop(const float* from, float* to, size_t count) { HWY_DYNAMIC_DISPATCH(copy_loop)(from, to, count); }

std::string peak_loop_isa() { return HWY_DYNAMIC_DISPATCH(isa)(); }

}  // namespace autograph
#endif

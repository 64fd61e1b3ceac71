#include "backends/cpu/simd/conv/planes/plane_conv_loops.h"

#include <algorithm>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/planes/plane_conv_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/conv/conv_steps-inl.h"
#include "backends/cpu/simd/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// N vectors of a row of inputs, and of one of sums.
template <int N>
struct Line {
  static HWY_INLINE Line at(const float* from) {
    const D d;
    const size_t lanes = hn::Lanes(d);
    Line line;
    line.v0 = hn::LoadU(d, from);
    line.v1 = N > 1 ? hn::LoadU(d, from + lanes) : line.v0;
    line.v2 = N > 2 ? hn::LoadU(d, from + 2 * lanes) : line.v0;
    line.v3 = N > 3 ? hn::LoadU(d, from + 3 * lanes) : line.v0;
    return line;
  }
  static HWY_INLINE Line sums(const float* bias, const float* sums) {
    if (!bias) return at(sums);
    Line line;
    line.v0 = line.v1 = line.v2 = line.v3 = hn::Set(D(), *bias);
    return line;
  }
  HWY_INLINE void add(V weight, const Line& x) {
    v0 = hn::MulAdd(weight, x.v0, v0);
    if (N > 1) v1 = hn::MulAdd(weight, x.v1, v1);
    if (N > 2) v2 = hn::MulAdd(weight, x.v2, v2);
    if (N > 3) v3 = hn::MulAdd(weight, x.v3, v3);
  }
  HWY_INLINE void store(float* to) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    hn::StoreU(v0, d, to);
    if (N > 1) hn::StoreU(v1, d, to + lanes);
    if (N > 2) hn::StoreU(v2, d, to + 2 * lanes);
    if (N > 3) hn::StoreU(v3, d, to + 3 * lanes);
  }

  V v0, v1, v2, v3;
};

// One place of `padded` for kOutputs channels of the output.
template <int N, int kOutputs>
HWY_INLINE void convolve_outputs(const PlaneConvTask& t, const float* x, const float* w, const float* bias, float* y) {
  const D d;
  const int64_t next = t.rows * t.pitch, to_next = t.weights_size;
  const auto begin = [&](int o) HWY_ATTR { return Line<N>::sums(bias ? bias + o : nullptr, y + o * next); };
  Line<N> s0 = begin(0), s1 = s0, s2 = s0, s3 = s0;
  if (kOutputs > 1) s1 = begin(1);
  if (kOutputs > 2) s2 = begin(2);
  if (kOutputs > 3) s3 = begin(3);
  for (int64_t c = 0; c < t.channels; ++c, x += t.padded_size, w += t.taps) {
    for (int64_t k = 0; k < t.taps; ++k) {
      const Line<N> in = Line<N>::at(x + t.offsets[k]);
      s0.add(hn::Set(d, w[k]), in);
      if (kOutputs > 1) s1.add(hn::Set(d, w[k + to_next]), in);
      if (kOutputs > 2) s2.add(hn::Set(d, w[k + 2 * to_next]), in);
      if (kOutputs > 3) s3.add(hn::Set(d, w[k + 3 * to_next]), in);
    }
  }
  s0.store(y);
  if (kOutputs > 1) s1.store(y + next);
  if (kOutputs > 2) s2.store(y + 2 * next);
  if (kOutputs > 3) s3.store(y + 3 * next);
}

// Two neighbouring places for one channel of the output: one alone waits for each of its sums.
template <int N>
HWY_INLINE void convolve_two_places(const PlaneConvTask& t, const float* x, const float* w, const float* bias,
                                    float* y) {
  const D d;
  const size_t next = N * hn::Lanes(d);
  Line<N> first = Line<N>::sums(bias, y), second = Line<N>::sums(bias, y + next);
  for (int64_t c = 0; c < t.channels; ++c, x += t.padded_size, w += t.taps) {
    for (int64_t k = 0; k < t.taps; ++k) {
      const V weight = hn::Set(d, w[k]);
      const float* from = x + t.offsets[k];
      first.add(weight, Line<N>::at(from));
      second.add(weight, Line<N>::at(from + next));
    }
  }
  first.store(y);
  second.store(y + next);
}

// Rows [begin, end) of the inputs of two rows of outputs, the second of which begins `row_stride` rows below the first.
template <int N, bool kFirst, bool kSecond>
HWY_INLINE void add_rows(const PlaneConvTask& t, const float* x, const float* w, int64_t begin, int64_t end,
                         Line<N>& first, Line<N>& second) {
  const D d;
  const float* to_first = w + begin * t.taps_of_row;
  const float* to_second = to_first - t.row_stride * t.taps_of_row;
  x += begin * t.width;
  for (int64_t row = begin; row < end; ++row, x += t.width) {
    for (int64_t k = 0; k < t.taps_of_row; ++k, ++to_first, ++to_second) {
      const Line<N> in = Line<N>::at(x + t.offsets[k]);
      if (kFirst) first.add(hn::Set(d, *to_first), in);
      if (kSecond) second.add(hn::Set(d, *to_second), in);
    }
  }
}

// Two rows of one channel of the output, so that what both need is loaded once.
template <int N>
HWY_INLINE void convolve_two_rows(const PlaneConvTask& t, const float* x, const float* w, const float* bias, float* y) {
  const int64_t kernel = t.taps / t.taps_of_row;
  Line<N> first = Line<N>::sums(bias, y), second = Line<N>::sums(bias, y + t.pitch);
  for (int64_t c = 0; c < t.channels; ++c, x += t.padded_size, w += t.taps) {
    add_rows<N, true, false>(t, x, w, 0, t.row_stride, first, second);
    add_rows<N, true, true>(t, x, w, t.row_stride, kernel, first, second);
    add_rows<N, false, true>(t, x, w, kernel, kernel + t.row_stride, first, second);
  }
  first.store(y);
  second.store(y + t.pitch);
}

// A row of sums, three or four vectors at a time: f(x, y, number of vectors as a constant).
template <int kMost, class F>
HWY_INLINE void for_vectors(const PlaneConvTask& t, const float* x, float* y, const F& f) {
  static_assert(kMost == 3 || kMost == 4);
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t left = (t.columns + lanes - 1) / lanes; left > 0;
       left -= kMost, x += kMost * lanes, y += kMost * lanes) {
    if constexpr (kMost == 4) {
      if (left == 3) return f(x, y, std::integral_constant<int, 3>());
    }
    if (left == 1) return f(x, y, std::integral_constant<int, 1>());
    if (left == 2) return f(x, y, std::integral_constant<int, 2>());
    f(x, y, std::integral_constant<int, kMost>());
  }
}

// Of output channel `o`, one row after the other.
void convolve_one_output(const PlaneConvTask& t, int64_t o) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const float* w = t.weights + o * t.weights_size;
  const float* bias = t.bias ? t.bias + o : nullptr;
  const bool shares = t.is_dense && t.row_stride * t.taps_of_row < t.taps;
  for (int64_t r = 0; r < t.rows;) {
    const float* x = t.padded + r * t.row_stride * t.width;
    float* y = t.sums + (o * t.rows + r) * t.pitch;
    if (shares && r + 1 < t.rows) {
      for_vectors<4>(t, x, y, [&](const float* from, float* to, auto n) HWY_ATTR {
        convolve_two_rows<decltype(n)::value>(t, from, w, bias, to);
      });
      r += 2;
      continue;
    }
    const int64_t whole = (t.columns + lanes - 1) / lanes * lanes;
    int64_t done = 0;
    for (; done + 8 * lanes <= whole; done += 8 * lanes) convolve_two_places<4>(t, x + done, w, bias, y + done);
    PlaneConvTask rest = t;
    rest.columns = std::max<int64_t>(0, t.columns - done);
    for_vectors<4>(rest, x + done, y + done, [&](const float* from, float* to, auto n) HWY_ATTR {
      convolve_outputs<decltype(n)::value, 1>(t, from, w, bias, to);
    });
    ++r;
  }
}

// Of kOutputs channels from `o` on.
template <int kOutputs>
void convolve_group(const PlaneConvTask& t, int64_t o) {
  // Sums, inputs and a weight fill 16 registers.
  constexpr int kMost = kOutputs > 2 ? 3 : 4;
  const float* w = t.weights + o * t.weights_size;
  const float* bias = t.bias ? t.bias + o : nullptr;
  for (int64_t r = 0; r < t.rows; ++r) {
    const float* x = t.padded + r * t.row_stride * t.width;
    for_vectors<kMost>(t, x, t.sums + (o * t.rows + r) * t.pitch, [&](const float* from, float* to, auto n) HWY_ATTR {
      convolve_outputs<decltype(n)::value, kOutputs>(t, from, w, bias, to);
    });
  }
}

void convolve_planes(const PlaneConvTask& t) {
  int64_t o = 0;
  for (; o + 4 <= t.outputs; o += 4) convolve_group<4>(t, o);
  switch (t.outputs - o) {
    case 3: return convolve_group<3>(t, o);
    case 2: return convolve_group<2>(t, o);
    case 1: return convolve_one_output(t, o);
    default: return;
  }
}

void run_steps(std::span<const ConvStep> steps, const ConvResiduals& residuals, float* sums, int64_t count) {
  const D d;
  for (const ConvStep& step : steps) {
    const float* const from = residuals.of(step);
    apply_conv_step(d, step, [&](const auto& f) HWY_ATTR {
      map_row(d, sums, sums, static_cast<size_t>(count), [&](V v, size_t i, size_t n) HWY_ATTR {
        const auto added = [&]() HWY_ATTR {
          return n == hn::Lanes(d) ? hn::LoadU(d, from + i) : load_some(d, from + i, n, hn::Zero(d));
        };
        return f(v, added);
      });
    });
  }
}

int64_t lanes_of_planes() { return static_cast<int64_t>(hn::Lanes(D())); }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(convolve_planes);
HWY_EXPORT(run_steps);
HWY_EXPORT(lanes_of_planes);

void add_plane_products(const PlaneConvTask& task) { HWY_DYNAMIC_DISPATCH(convolve_planes)(task); }

void finish_row(std::span<const ConvStep> steps, const ConvResiduals& residuals, float* sums, int64_t count) {
  HWY_DYNAMIC_DISPATCH(run_steps)(steps, residuals, sums, count);
}

int64_t plane_conv_lanes() { return HWY_DYNAMIC_DISPATCH(lanes_of_planes)(); }

}  // namespace autograph::simd
#endif  // HWY_ONCE

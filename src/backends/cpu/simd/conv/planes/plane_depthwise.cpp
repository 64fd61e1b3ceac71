// Depthwise conv of row-major f32 with one or two spatial dims: every channel by itself, a row of outputs at a time.
//
// Each plane is copied into a padded one first (plane_padding.h).
#include <algorithm>
#include <memory>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/planes/plane_padding.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "ops/defs.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/planes/plane_depthwise.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/cache_control.h>
#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_PLANE_DEPTHWISE
#define AG_SIMD_PLANE_DEPTHWISE
namespace autograph::simd {

// One padded plane and its filter.
struct DepthwisePlane {
  const float* padded;
  const int64_t* offsets;  // of each tap of a row from the first input of a window
  const float* weights;
  int64_t taps, taps_of_row;
  int64_t width;     // of the padded plane
  int64_t row_step;  // elements from a row of a window to the next
  int64_t stride;    // in rows of the padded plane, from a row of outputs to the next
  bool is_dense;     // follow the rows of a window one another?
  int64_t rows, columns;
  float bias;
  // What the next plane is made of is fetched meanwhile, so that copying it does not wait for memory.
  const float* next;
  int64_t next_size;  // 0: there is none
};

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Outputs of a row that fill up to four vectors.
struct RowSums {
  HWY_INLINE explicit RowSums(float bias) : s0(hn::Set(D(), bias)), s1(s0), s2(s0), s3(s0) {}

  template <int N>
  HWY_INLINE void add(V weight, V v0, V v1, V v2, V v3) {
    s0 = hn::MulAdd(weight, v0, s0);
    if (N > 1) s1 = hn::MulAdd(weight, v1, s1);
    if (N > 2) s2 = hn::MulAdd(weight, v2, s2);
    if (N > 3) s3 = hn::MulAdd(weight, v3, s3);
  }

  // `last` elements of the last of N vectors.
  template <int N>
  HWY_INLINE void store(float* y, size_t last) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    if (N > 1) hn::StoreU(s0, d, y);
    if (N > 2) hn::StoreU(s1, d, y + lanes);
    if (N > 3) hn::StoreU(s2, d, y + 2 * lanes);
    const V rest = N == 4 ? s3 : N == 3 ? s2 : N == 2 ? s1 : s0;
    if (last < lanes) return store_some(d, rest, y + (N - 1) * lanes, last);
    hn::StoreU(rest, d, y + (N - 1) * lanes);
  }

  V s0, s1, s2, s3;
};

// Rows [begin, end) of the inputs of two rows of outputs, the second of which begins `stride` rows below the first.
// kTaps are in a row of the window, any number where 0.
template <int N, int kTaps, bool kFirst, bool kSecond>
HWY_INLINE void add_rows(const DepthwisePlane& plane, const float* x, int64_t begin, int64_t end, RowSums& first,
                         RowSums& second) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const int64_t taps = kTaps > 0 ? kTaps : plane.taps_of_row;
  const float* to_first = plane.weights + begin * taps;
  const float* to_second = to_first - plane.stride * taps;
  x += begin * plane.row_step;
  for (int64_t row = begin; row < end; ++row, x += plane.row_step) {
#pragma GCC unroll 8
    for (int64_t t = 0; t < taps; ++t, ++to_first, ++to_second) {
      const float* from = x + plane.offsets[t];
      const V v0 = hn::LoadU(d, from), v1 = N > 1 ? hn::LoadU(d, from + lanes) : v0;
      const V v2 = N > 2 ? hn::LoadU(d, from + 2 * lanes) : v0, v3 = N > 3 ? hn::LoadU(d, from + 3 * lanes) : v0;
      if (kFirst) first.add<N>(hn::Set(d, *to_first), v0, v1, v2, v3);
      if (kSecond) second.add<N>(hn::Set(d, *to_second), v0, v1, v2, v3);
    }
  }
}

template <int N, int kTaps>
HWY_INLINE void convolve_row(const DepthwisePlane& plane, const float* x, float* y, size_t last) {
  RowSums sums(plane.bias), none(0);
  add_rows<N, kTaps, true, false>(plane, x, 0, plane.taps / plane.taps_of_row, sums, none);
  sums.store<N>(y, last);
}

// Two rows of outputs, so that what both need is loaded once.
template <int N, int kTaps>
HWY_INLINE void convolve_two_rows(const DepthwisePlane& plane, const float* x, float* y, size_t last) {
  const int64_t kernel = plane.taps / plane.taps_of_row;
  RowSums first(plane.bias), second(plane.bias);
  add_rows<N, kTaps, true, false>(plane, x, 0, plane.stride, first, second);
  add_rows<N, kTaps, true, true>(plane, x, plane.stride, kernel, first, second);
  add_rows<N, kTaps, false, true>(plane, x, kernel, kernel + plane.stride, first, second);
  first.store<N>(y, last);
  second.store<N>(y + plane.columns, last);
}

template <int N, int kTaps>
HWY_INLINE void convolve_tile(const DepthwisePlane& plane, bool two_rows, const float* x, float* y, size_t last) {
  if (two_rows) return convolve_two_rows<N, kTaps>(plane, x, y, last);
  convolve_row<N, kTaps>(plane, x, y, last);
}

// Fetches `count` elements of the next plane from `at` on. What belongs to a row of outputs is found once for a plane:
// a division takes as long as a row.
HWY_INLINE void fetch_next(const DepthwisePlane& plane, int64_t at, int64_t count) {
  constexpr int64_t kCacheLine = 64 / sizeof(float);
  const int64_t end = std::min(at + count, plane.next_size);
  for (; at < end; at += kCacheLine) hwy::Prefetch(plane.next + at);
}

template <int kTaps>
HWY_INLINE void convolve_plane_by(const DepthwisePlane& plane, float* y) {
  const size_t lanes = hn::Lanes(D());
  const auto columns = static_cast<size_t>(plane.columns);
  const int64_t fetched = (plane.next_size + plane.rows - 1) / plane.rows;  // with each row
  const bool shares = plane.is_dense && plane.stride * plane.taps_of_row < plane.taps;
  for (int64_t r = 0; r < plane.rows;) {
    const float* x = plane.padded + r * plane.stride * plane.width;
    const bool two_rows = shares && r + 1 < plane.rows;
    for (size_t o = 0; o < columns; o += 4 * lanes) {
      const size_t vectors = std::min<size_t>(4, (columns - o + lanes - 1) / lanes);
      const size_t last = std::min(lanes, columns - o - (vectors - 1) * lanes);
      switch (vectors) {
        case 4: convolve_tile<4, kTaps>(plane, two_rows, x + o, y + o, last); break;
        case 3: convolve_tile<3, kTaps>(plane, two_rows, x + o, y + o, last); break;
        case 2: convolve_tile<2, kTaps>(plane, two_rows, x + o, y + o, last); break;
        default: convolve_tile<1, kTaps>(plane, two_rows, x + o, y + o, last); break;
      }
    }
    const int64_t done = two_rows ? 2 : 1;
    fetch_next(plane, r * fetched, done * fetched);
    r += done;
    y += static_cast<size_t>(done) * columns;
  }
}

void convolve_plane(const DepthwisePlane& plane, float* y) {
  if (plane.taps_of_row == 3) return convolve_plane_by<3>(plane, y);
  if (plane.taps_of_row == 5) return convolve_plane_by<5>(plane, y);
  convolve_plane_by<0>(plane, y);
}

int64_t plane_lanes() { return static_cast<int64_t>(hn::Lanes(hn::ScalableTag<float>())); }

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(convolve_plane);
HWY_EXPORT(plane_lanes);

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

// For weights that are not finite, which times the zeros of the padding would give NaN: only taps inside the input.
void convolve_inside(const PlaneShape& shape, const float* x, const float* weights, float bias, float* y) {
  for (int64_t r = 0; r < shape.rows.out; ++r) {
    const TapRange rows = shape.rows.taps_inside(r);
    for (int64_t o = 0; o < shape.columns.out; ++o) {
      const TapRange columns = shape.columns.taps_inside(o);
      float sum = bias;
      for (int64_t i = 0; i < rows.count; ++i) {
        const float* line = x + (rows.input + i * shape.rows.dilation) * shape.columns.in + columns.input;
        const float* taps = weights + (rows.kernel + i) * shape.columns.kernel + columns.kernel;
        for (int64_t j = 0; j < columns.count; ++j) sum += taps[j] * line[j * shape.columns.dilation];
      }
      *y++ = sum;
    }
  }
}

class PlaneDepthwise : public Kernel {
 public:
  explicit PlaneDepthwise(const KernelCall& call)
      : shape_(plane_shape(call.attributes, call.input_dims(kX), call.input_dims(kW))),
        offsets_(shape_.offsets()),
        planes_(call.output_dims(0)[0] * call.output_dims(0)[1]),
        channels_(call.output_dims(0)[1]),
        sharing_(channels_ / call.input_dims(kX)[1]) {
    const auto taps = static_cast<int64_t>(offsets_.size());
    threads_ = useful_threads(call.threads, planes_ * shape_.rows.out * shape_.columns.out * (1 + taps / 8));
  }

  // A padded plane for every thread.
  size_t scratch_bytes() const override { return static_cast<size_t>(threads_ * padded_size()) * sizeof(float); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[kX].data<float>();
    const float* w = args.inputs[kW].data<float>();
    const float* bias =
        args.inputs.size() > kB && args.inputs[kB].is_present() ? args.inputs[kB].data<float>() : nullptr;
    float* y = args.outputs[0].mutable_data<float>();
    const int64_t in_plane = shape_.rows.in * shape_.columns.in, out_plane = shape_.rows.out * shape_.columns.out;
    const auto taps = static_cast<int64_t>(offsets_.size());
    for_shares(threads_, planes_, [&](int64_t begin, int64_t end, int thread) {
      float* padded = static_cast<float*>(args.scratch) + thread * padded_size();
      std::fill_n(padded, padded_size(), 0.0F);
      for (int64_t plane = begin; plane < end; ++plane) {
        const float* from = x + plane / sharing_ * in_plane;
        if (plane == begin || plane % sharing_ == 0) pad_plane(from, padded);
        const int64_t channel = plane % channels_;
        const float* weights = w + channel * taps;
        const float shift = bias ? bias[channel] : 0;
        if (all_finite(weights, taps)) {
          HWY_DYNAMIC_DISPATCH(convolve_plane)
          ({.padded = padded,
            .offsets = offsets_.data(),
            .weights = weights,
            .taps = taps,
            .taps_of_row = shape_.columns.kernel,
            .width = shape_.padded_width(),
            .row_step = shape_.padded_width() * shape_.rows.dilation,
            .stride = shape_.rows.stride,
            .is_dense = shape_.rows.dilation == 1,
            .rows = shape_.rows.out,
            .columns = shape_.columns.out,
            .bias = shift,
            .next = from + in_plane,
            .next_size = plane + 1 < end && (plane + 1) % sharing_ == 0 ? in_plane : 0},
           y + plane * out_plane);
        } else {
          convolve_inside(shape_, from, weights, shift, y + plane * out_plane);
        }
      }
    });
  }

 private:
  void pad_plane(const float* x, float* padded) const {
    const WindowAxis& rows = shape_.rows;
    const int64_t inside = std::min(rows.in, shape_.padded_rows - rows.pad_begin);
    if (inside > 0) pad_rows(shape_, x, rows.pad_begin, inside, padded + rows.pad_begin * shape_.padded_width());
  }

  // In whole cache lines, so that threads do not write to the same ones; and as vectors are loaded whole, with room
  // behind the end.
  int64_t padded_size() const { return (shape_.padded_rows * shape_.padded_width() + 15) / 16 * 16 + kPlaneSlack; }

  PlaneShape shape_;
  std::vector<int64_t> offsets_;  // of the taps of a window
  int64_t planes_;                // of the output
  int64_t channels_;              // of the output
  int64_t sharing_;               // output channels that read one input channel
  int threads_ = 1;
};

std::string why_not(const KernelCall& call) {
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  const Dims x = call.input_dims(kX), w = call.input_dims(kW);
  if (x.size() < 3 || x.size() > 4) return "1 or 2 spatial dims only";
  if (call.attributes.integer("group") != x[1] || w[1] != 1) return "not depthwise";
  return "";
}

Prepared prepare(const KernelCall& call) { return {std::make_unique<PlaneDepthwise>(call), ""}; }

// A tap takes its time in a tile of one vector, too: each sum waits for the one before. So does a plane of few rows.
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kUsOfTap = 1.2e-3;  // in a tile of up to four vectors
  constexpr double kUsOfPlane = 0.25;
  constexpr double kFlopsPerUsAndThread = 25e3;
  constexpr double kBytesPerUs = 20e3;
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  const PlaneShape shape = plane_shape(call.attributes, call.input_dims(kX), call.input_dims(kW));
  const int64_t tile = 4 * HWY_DYNAMIC_DISPATCH(plane_lanes)();
  const int64_t tiles = shape.rows.out * ((shape.columns.out + tile - 1) / tile);
  const Dims y = call.output_dims(0);
  const double taps = static_cast<double>(y[0] * y[1] * tiles * shape.rows.kernel * shape.columns.kernel);
  const auto planes = static_cast<double>(y[0] * y[1]);
  const double work_us =
      std::max(cost.flops / kFlopsPerUsAndThread, taps * kUsOfTap) + planes * (kUsOfPlane + shape.sorting_us());
  return {{.name = "",
           .inputs = {},
           .outputs = {},
           .cost_us = kStartUs + work_us / call.threads + cost.bytes / kBytesPerUs}};
}

}  // namespace

KernelDef plane_depthwise_kernel() {
  return {.name = "cpu.depthwise_of_planes",
          .op = conv_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

// softmax and log_softmax in f32 along any axis: largest element, exponentials and their sum, then a division or a
// subtraction; a row stays in cache meanwhile.
//
// A NaN or +inf in a row, or a row of -inf, makes the whole row NaN, as the formula says.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backends/cpu/axis_blocks.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/simd/normalization/log_sums.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/normalization/softmax.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
#include "backends/cpu/simd/vector_math-inl.h"
#include "ops/defs.h"

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE float largest_of(const float* x, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V lowest = hn::Set(d, -kInfinity);
  V m0 = lowest, m1 = lowest;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    m0 = hn::Max(m0, hn::LoadU(d, x + i));
    m1 = hn::Max(m1, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= count; i += lanes) m0 = hn::Max(m0, hn::LoadU(d, x + i));
  if (i < count) m1 = hn::Max(m1, load_some(d, x + i, count - i, lowest));
  return hn::GetLane(hn::MaxOfLanes(d, hn::Max(m0, m1)));
}

HWY_INLINE void softmax_row(const float* x, float* y, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  const V largest = hn::Set(d, largest_of(x, count));
  V s0 = hn::Zero(d), s1 = s0;
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const V e0 = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i), largest));
    const V e1 = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i + lanes), largest));
    s0 = hn::Add(s0, e0);
    s1 = hn::Add(s1, e1);
    hn::StoreU(e0, d, y + i);
    hn::StoreU(e1, d, y + i + lanes);
  }
  for (; i + lanes <= count; i += lanes) {
    const V e = exp_nonpositive(d, hn::Sub(hn::LoadU(d, x + i), largest));
    s0 = hn::Add(s0, e);
    hn::StoreU(e, d, y + i);
  }
  if (i < count) {
    const V rest = load_some(d, x + i, count - i, hn::Set(d, -kInfinity));
    const V e = exp_nonpositive(d, hn::Sub(rest, largest));
    s1 = hn::Add(s1, hn::IfThenElseZero(hn::FirstN(d, count - i), e));
    store_some(d, e, y + i, count - i);
  }
  const V factor = hn::Div(hn::Set(d, 1.0F), hn::SumOfLanes(d, hn::Add(s0, s1)));
  map_row(d, y, y, count, [&](V v, size_t, size_t) HWY_ATTR { return hn::Mul(v, factor); });
}

// The largest element of a row and the sum of e^(x - largest), in one pass: parts of the row are read from the first
// cache when they are summed, and earlier sums shrink where a larger element comes.
struct ExponentialSum {
  float largest = -kInfinity;
  double sum = 0;
};

HWY_INLINE ExponentialSum sum_exponentials(const float* x, size_t count) {
  constexpr size_t kPart = 2048;
  const D d;
  ExponentialSum result;
  for (size_t begin = 0; begin < count; begin += kPart) {
    const size_t size = std::min(kPart, count - begin);
    const float largest = largest_of(x + begin, size);
    if (largest > result.largest) {
      result.sum *= std::exp(static_cast<double>(result.largest) - static_cast<double>(largest));
      result.largest = largest;
    }
    // Of nothing but -inf so far all terms are 0, and NaN what is NaN.
    const V shift = hn::Set(d, result.largest == -kInfinity ? 0.0F : result.largest);
    result.sum += sum_row(d, x + begin, size, hn::Set(d, -kInfinity),
                          [&](V v) HWY_ATTR { return exp_nonpositive(d, hn::Sub(v, shift)); });
  }
  return result;
}

HWY_INLINE void log_softmax_row(const float* x, float* y, size_t count) {
  const D d;
  const ExponentialSum sum = sum_exponentials(x, count);
  const V largest = hn::Set(d, sum.largest);
  const V rest = hn::Set(d, static_cast<float>(std::log(sum.sum)));
  // In this order, because the largest element may be much larger than the logarithm.
  map_row(d, x, y, count, [&](V v, size_t, size_t) HWY_ATTR { return hn::Sub(hn::Sub(v, largest), rest); });
}

void log_sums_along_rows(const float* x, int64_t rows, int64_t count, float* largest, float* log_sum) {
  for (int64_t row = 0; row < rows; ++row, x += count) {
    const ExponentialSum sum = sum_exponentials(x, static_cast<size_t>(count));
    largest[row] = sum.largest;
    log_sum[row] = static_cast<float>(std::log(sum.sum));
  }
}

void log_sums_along_columns(const float* x, int64_t extent, int64_t stride, float* largest, float* log_sum) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t c = 0; c < stride; c += lanes) {
    const auto width = static_cast<size_t>(std::min(lanes, stride - c));
    const bool full = stride - c >= lanes;
    const auto load = [&](int64_t i) HWY_ATTR {
      const float* from = x + i * stride + c;
      return full ? hn::LoadU(d, from) : load_some(d, from, width, hn::Zero(d));
    };
    const auto store = [&](V v, float* to) HWY_ATTR { full ? hn::StoreU(v, d, to) : store_some(d, v, to, width); };
    V most = hn::Set(d, -kInfinity), sum = hn::Zero(d);
    for (int64_t i = 0; i < extent; ++i) most = hn::Max(most, load(i));
    for (int64_t i = 0; i < extent; ++i) sum = hn::Add(sum, exp_nonpositive(d, hn::Sub(load(i), most)));
    store(most, largest + c);
    store(log(d, sum), log_sum + c);
  }
}

// Lanes of neighbouring columns; `width` of them count.
template <bool kLogarithm>
HWY_INLINE void softmax_columns_of(const float* x, float* y, int64_t extent, int64_t stride, size_t width) {
  const D d;
  const bool full = width == hn::Lanes(d);
  const auto load = [&](const float* from)
                        HWY_ATTR { return full ? hn::LoadU(d, from) : load_some(d, from, width, hn::Zero(d)); };
  const auto store = [&](V v, float* to) HWY_ATTR {
    if (full) return hn::StoreU(v, d, to);
    store_some(d, v, to, width);
  };
  V largest = hn::Set(d, -kInfinity);
  for (int64_t i = 0; i < extent; ++i) largest = hn::Max(largest, load(x + i * stride));
  V sum = hn::Zero(d);
  for (int64_t i = 0; i < extent; ++i) {
    const V e = exp_nonpositive(d, hn::Sub(load(x + i * stride), largest));
    sum = hn::Add(sum, e);
    if (!kLogarithm) store(e, y + i * stride);
  }
  if (kLogarithm) {
    const V rest = log(d, sum);
    for (int64_t i = 0; i < extent; ++i) {
      store(hn::Sub(hn::Sub(load(x + i * stride), largest), rest), y + i * stride);
    }
    return;
  }
  const V factor = hn::Div(hn::Set(d, 1.0F), sum);
  for (int64_t i = 0; i < extent; ++i) store(hn::Mul(load(y + i * stride), factor), y + i * stride);
}

void along_rows(const float* x, float* y, int64_t rows, int64_t count, bool logarithm) {
  for (int64_t at = 0; at < rows * count; at += count) {
    if (logarithm)
      log_softmax_row(x + at, y + at, static_cast<size_t>(count));
    else
      softmax_row(x + at, y + at, static_cast<size_t>(count));
  }
}

// One [extent, stride] block, along its first axis.
void along_columns(const float* x, float* y, int64_t extent, int64_t stride, bool logarithm) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  for (int64_t c = 0; c < stride; c += lanes) {
    const auto width = static_cast<size_t>(std::min(lanes, stride - c));
    if (logarithm)
      softmax_columns_of<true>(x + c, y + c, extent, stride, width);
    else
      softmax_columns_of<false>(x + c, y + c, extent, stride, width);
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(along_rows);
HWY_EXPORT(along_columns);
HWY_EXPORT(log_sums_along_rows);
HWY_EXPORT(log_sums_along_columns);

void run_blocks(const float* x, float* y, const AxisBlocks& blocks, int64_t outer, bool logarithm) {
  if (blocks.inner == 1) return HWY_DYNAMIC_DISPATCH(along_rows)(x, y, outer, blocks.extent, logarithm);
  const int64_t block = blocks.extent * blocks.inner;
  for (int64_t at = 0; at < outer * block; at += block) {
    HWY_DYNAMIC_DISPATCH(along_columns)(x + at, y + at, blocks.extent, blocks.inner, logarithm);
  }
}

class SoftmaxKernel : public Kernel {
 public:
  SoftmaxKernel(const KernelCall& call, bool logarithm)
      : logarithm_(logarithm),
        blocks_(call.input_dims(0), call.attributes.integer("axis")),
        threads_(useful_threads(call.threads, kWork * blocks_.elements())) {}

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[0].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    const int64_t block = blocks_.extent * blocks_.inner;
    for_shares(threads_, blocks_.outer, [&](int64_t begin, int64_t end, int) {
      run_blocks(x + begin * block, y + begin * block, blocks_, end - begin, logarithm_);
    });
  }

 private:
  static constexpr int64_t kWork = 8;  // of an element, in additions
  const bool logarithm_;
  const AxisBlocks blocks_;
  const int threads_;
};

std::string why_not(const KernelCall& call) { return why_not_f32(call); }

Prepared prepare_softmax(const KernelCall& call) { return {std::make_unique<SoftmaxKernel>(call, false), ""}; }
Prepared prepare_log_softmax(const KernelCall& call) { return {std::make_unique<SoftmaxKernel>(call, true), ""}; }

}  // namespace

void log_sums_of_rows(const float* x, int64_t rows, int64_t count, float* largest, float* log_sum) {
  HWY_DYNAMIC_DISPATCH(log_sums_along_rows)(x, rows, count, largest, log_sum);
}

void log_sums_of_columns(const float* x, int64_t extent, int64_t stride, float* largest, float* log_sum) {
  HWY_DYNAMIC_DISPATCH(log_sums_along_columns)(x, extent, stride, largest, log_sum);
}

void log_softmax_blocks(const float* x, float* y, int64_t outer, int64_t extent, int64_t inner) {
  run_blocks(x, y, AxisBlocks({outer, extent, inner}, 1), outer, /*logarithm=*/true);
}

KernelDef softmax_kernel() {
  return {.name = "cpu.softmax_simd", .op = softmax_def().name, .why_not = why_not, .prepare = prepare_softmax};
}

KernelDef log_softmax_kernel() {
  return {
      .name = "cpu.log_softmax_simd", .op = log_softmax_def().name, .why_not = why_not, .prepare = prepare_log_softmax};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

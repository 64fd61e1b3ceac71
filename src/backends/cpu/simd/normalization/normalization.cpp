// layer_normalization and rms_normalization over trailing dims in f32: the statistics of a row in two passes (one for
// RMS), then one multiplication and addition per element; the row stays in cache meanwhile. Rows whose squares are
// beyond the range of f32, or whose elements are far from 0 and close together, are computed in f64.
#include <cmath>
#include <cstdint>

#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/normalization/normalization.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/rows-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_NORMALIZED_ROWS
#define AG_SIMD_NORMALIZED_ROWS
namespace autograph::simd {

struct NormalizedRows {
  const float* x;
  const float* scale;
  const float* bias;  // may be null
  float* y;
  int64_t size;
  double epsilon;
};

// Less `mean`, divided by the root of the mean square of that, both in f64.
inline void normalize_in_f64(const NormalizedRows& rows, double mean, const float* x, float* y) {
  double squares = 0;
  for (int64_t i = 0; i < rows.size; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double factor = 1 / std::sqrt(squares / static_cast<double>(rows.size) + rows.epsilon);
  for (int64_t i = 0; i < rows.size; ++i) {
    const double scaled = (x[i] - mean) * factor * static_cast<double>(rows.scale[i]);
    y[i] = static_cast<float>(scaled + (rows.bias ? static_cast<double>(rows.bias[i]) : 0));
  }
}

inline void layer_row_in_f64(const NormalizedRows& rows, const float* x, float* y) {
  double sum = 0;
  for (int64_t i = 0; i < rows.size; ++i) sum += x[i];
  normalize_in_f64(rows, sum / static_cast<double>(rows.size), x, y);
}

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V load_part(const float* from, size_t count) {
  const D d;
  return count == hn::Lanes(d) ? hn::LoadU(d, from) : load_some(d, from, count, hn::Zero(d));
}

HWY_INLINE void layer_row(const NormalizedRows& rows, const float* x, float* y) {
  const D d;
  const auto size = static_cast<size_t>(rows.size);
  const auto same = [](V v) HWY_ATTR { return v; };
  const double exact_mean = sum_row(d, x, size, hn::Zero(d), same) / static_cast<double>(size);
  const V mean = hn::Set(d, static_cast<float>(exact_mean));
  const auto square = [&](V v) HWY_ATTR {
    const V centered = hn::Sub(v, mean);
    return hn::Mul(centered, centered);
  };
  const double variance = sum_row(d, x, size, mean, square) / static_cast<double>(size);
  if (!holds_in_f32(variance, exact_mean, rows.epsilon)) return layer_row_in_f64(rows, x, y);
  const V factor = hn::Set(d, static_cast<float>(1.0 / std::sqrt(variance + rows.epsilon)));
  if (rows.bias) {
    map_row(d, x, y, size, [&](V v, size_t i, size_t count) HWY_ATTR {
      const V scaled = hn::Mul(hn::Sub(v, mean), hn::Mul(factor, load_part(rows.scale + i, count)));
      return hn::Add(scaled, load_part(rows.bias + i, count));
    });
  } else {
    map_row(d, x, y, size, [&](V v, size_t i, size_t count) HWY_ATTR {
      return hn::Mul(hn::Sub(v, mean), hn::Mul(factor, load_part(rows.scale + i, count)));
    });
  }
}

void layer_rows(const NormalizedRows& rows, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) layer_row(rows, rows.x + r * rows.size, rows.y + r * rows.size);
}

void rms_rows(const NormalizedRows& rows, int64_t begin, int64_t end) {
  const D d;
  const auto size = static_cast<size_t>(rows.size);
  for (int64_t r = begin; r < end; ++r) {
    const float* x = rows.x + r * rows.size;
    const auto square = [](V v) HWY_ATTR { return hn::Mul(v, v); };
    const double mean = sum_row(d, x, size, hn::Zero(d), square) / static_cast<double>(size);
    if (!holds_in_f32(mean, 0, rows.epsilon)) {
      normalize_in_f64(rows, 0, x, rows.y + r * rows.size);
      continue;
    }
    const V factor = hn::Set(d, static_cast<float>(1.0 / std::sqrt(mean + rows.epsilon)));
    map_row(d, x, rows.y + r * rows.size, size, [&](V v, size_t i, size_t count) HWY_ATTR {
      return hn::Mul(v, hn::Mul(factor, load_part(rows.scale + i, count)));
    });
  }
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(layer_rows);
HWY_EXPORT(rms_rows);

int64_t row_size(const KernelCall& call) {
  const Dims dims = call.input_dims(0);
  int64_t axis = call.attributes.integer("axis");
  if (axis < 0) axis += static_cast<int64_t>(dims.size());
  int64_t size = 1;
  for (auto a = static_cast<size_t>(axis); a < dims.size(); ++a) size *= dims[a];
  return size;
}

std::string why_not(const KernelCall& call) {
  if (call.outputs.size() > 1) return "statistics are wanted";
  std::string reason = why_not_f32(call);
  if (!reason.empty()) return reason;
  const int64_t size = row_size(call);
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    if (call.has_input(slot) && call.inputs[slot].shape().num_elements() != size) return "scale or bias broadcasts";
  }
  return "";
}

class NormalizationKernel : public Kernel {
 public:
  NormalizationKernel(const KernelCall& call, bool centered)
      : centered_(centered), size_(row_size(call)), epsilon_(call.attributes.real("epsilon")) {
    const int64_t elements = call.inputs[0].shape().num_elements().value();
    rows_ = elements / size_;
    threads_ = useful_threads(call.threads, 3 * elements);
  }

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const float* bias = args.inputs.size() > 2 ? static_cast<const float*>(args.inputs[2].raw()) : nullptr;
    const NormalizedRows rows{args.inputs[0].data<float>(),
                              args.inputs[1].data<float>(),
                              bias,
                              args.outputs[0].mutable_data<float>(),
                              size_,
                              epsilon_};
    for_shares(threads_, rows_, [&](int64_t begin, int64_t end, int) {
      if (centered_) return HWY_DYNAMIC_DISPATCH(layer_rows)(rows, begin, end);
      HWY_DYNAMIC_DISPATCH(rms_rows)(rows, begin, end);
    });
  }

 private:
  const bool centered_;
  const int64_t size_;
  const double epsilon_;
  int64_t rows_ = 0;
  int threads_ = 1;
};

Prepared prepare_layer(const KernelCall& call) { return {std::make_unique<NormalizationKernel>(call, true), ""}; }
Prepared prepare_rms(const KernelCall& call) { return {std::make_unique<NormalizationKernel>(call, false), ""}; }

}  // namespace

KernelDef layer_normalization_kernel() {
  return {.name = "cpu.layer_normalization_simd",
          .op = layer_normalization_def().name,
          .why_not = why_not,
          .prepare = prepare_layer};
}

KernelDef rms_normalization_kernel() {
  return {.name = "cpu.rms_normalization_simd",
          .op = rms_normalization_def().name,
          .why_not = why_not,
          .prepare = prepare_rms};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

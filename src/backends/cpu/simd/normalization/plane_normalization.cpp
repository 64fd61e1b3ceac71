// instance_normalization, group_normalization and mean_variance_normalization in f32: mean and variance of a group in
// two passes, then one multiplication and addition per element; the group stays in cache meanwhile. Groups whose
// squares are beyond the range of f32 are computed in f64.
#include <cmath>
#include <cstdint>

#include "backends/cpu/normalization/moments.h"
#include "backends/cpu/reduction/reduced_axes.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/normalization/plane_normalization.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>
#include "backends/cpu/simd/reduction/totals-inl.h"
#include "backends/cpu/simd/rows-inl.h"
#include "ops/defs.h"

// Seen by the code of every instruction set, so written once.
#ifndef AG_SIMD_PLANE_NORMALIZATION
#define AG_SIMD_PLANE_NORMALIZATION
namespace autograph::simd {

struct GroupNormalization {
  ReducedAxes axes;
  double epsilon;
  bool epsilon_outside;  // added to the deviation, not to the variance
  int64_t channels;      // 0: neither scale nor bias
  int64_t plane;         // elements of a channel

  int64_t channel_of(int64_t element) const { return channels == 0 ? 0 : element / plane % channels; }
  double deviation(double variance) const {
    return epsilon_outside ? std::sqrt(variance) + epsilon : std::sqrt(variance + epsilon);
  }
  bool holds(double variance) const { return holds_in_f32(variance, 0, epsilon_outside ? epsilon * epsilon : epsilon); }
};

struct NormalizedTensors {
  const float* x;
  const float* scale;
  const float* bias;
  float* y;

  double scale_of(int64_t channel) const { return scale ? static_cast<double>(scale[channel]) : 1; }
  double bias_of(int64_t channel) const { return bias ? static_cast<double>(bias[channel]) : 0; }
};

inline void normalize_group_in_f64(const GroupNormalization& call, const NormalizedTensors& tensors, int64_t group) {
  const int64_t start = call.axes.start(group);
  const auto for_each = [&](const auto& visit) {
    for (const int64_t offset : call.axes.offsets) {
      for (int64_t i = 0; i < call.axes.run; ++i) visit(start + offset + i);
    }
  };
  const Moments of = moments_in_f64(tensors.x, for_each);
  const double deviation = call.deviation(of.variance);
  for_each([&](int64_t at) {
    const int64_t channel = call.channel_of(at);
    const double normal = (static_cast<double>(tensors.x[at]) - of.mean) / deviation;
    tensors.y[at] = static_cast<float>(normal * tensors.scale_of(channel) + tensors.bias_of(channel));
  });
}

}  // namespace autograph::simd
#endif

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// y = (x - mean) * factor + shift.
HWY_INLINE void scale_row(const float* x, float* y, int64_t count, V mean, float factor, float shift) {
  const D d;
  const V factors = hn::Set(d, factor), shifts = hn::Set(d, shift);
  map_row(d, x, y, static_cast<size_t>(count),
          [&](V v, size_t, size_t) HWY_ATTR { return hn::MulAdd(hn::Sub(v, mean), factors, shifts); });
}

HWY_INLINE void normalize_group(const GroupNormalization& call, const NormalizedTensors& tensors, int64_t group) {
  const D d;
  const ReducedAxes& axes = call.axes;
  const int64_t start = axes.start(group);
  const auto count = static_cast<double>(axes.combined());
  // In f64: of equal elements the mean must be that element, else an epsilon of next to nothing makes the rest large.
  const double exact_mean = total_of_rows<SumOf>(axes, tensors.x + start) / count;
  const auto rounded_mean = static_cast<float>(exact_mean);
  // What rounding took from the mean, all elements would be off by, and so would be their mean.
  const double rest = exact_mean - rounded_mean;
  const V mean = hn::Set(d, rounded_mean);
  const auto square = [&](V v) HWY_ATTR {
    const V centered = hn::Sub(v, mean);
    return hn::Mul(centered, centered);
  };
  double squares = 0;
  for (const int64_t offset : axes.offsets) {
    squares += sum_row(d, tensors.x + start + offset, static_cast<size_t>(axes.run), mean, square);
  }
  const double variance = no_less_than_zero(squares / count - rest * rest);
  if (!call.holds(variance)) return normalize_group_in_f64(call, tensors, group);
  const double deviation = call.deviation(variance);
  for (const int64_t offset : axes.offsets) {
    for (int64_t i = 0; i < axes.run; i += call.plane) {
      const int64_t at = start + offset + i;
      const int64_t channel = call.channel_of(at);
      const double factor = tensors.scale_of(channel) / deviation;
      const double bias = tensors.bias_of(channel);
      // Of an infinite scale a rest of 0 would make NaN.
      const double shift = std::isfinite(factor) ? bias - rest * factor : bias;
      scale_row(tensors.x + at, tensors.y + at, call.plane, mean, static_cast<float>(factor),
                static_cast<float>(shift));
    }
  }
}

void normalize_groups(const GroupNormalization& call, const NormalizedTensors& tensors, int64_t begin, int64_t end) {
  for (int64_t group = begin; group < end; ++group) normalize_group(call, tensors, group);
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {
namespace {

HWY_EXPORT(normalize_groups);

class GroupNormalizationKernel : public Kernel {
 public:
  GroupNormalizationKernel(GroupNormalization call, int threads)
      : call_(std::move(call)), threads_(useful_threads(threads, 3 * call_.axes.groups * call_.axes.combined())) {}

  std::vector<uint32_t> in_place_inputs() const override { return {0}; }

  void run(const KernelArgs& args) const override {
    const bool has_scale = call_.channels > 0;
    const NormalizedTensors tensors{args.inputs[0].data<float>(), has_scale ? args.inputs[1].data<float>() : nullptr,
                                    has_scale ? args.inputs[2].data<float>() : nullptr,
                                    args.outputs[0].mutable_data<float>()};
    for_shares(threads_, call_.axes.groups, [&](int64_t begin, int64_t end, int) {
      HWY_DYNAMIC_DISPATCH(normalize_groups)(call_, tensors, begin, end);
    });
  }

 private:
  const GroupNormalization call_;
  const int threads_;
};

// Groups of neighbouring channels, `groups` of them in each instance.
GroupNormalization channel_groups(const KernelCall& call, int64_t groups) {
  const Dims dims = call.input_dims(0);
  const int64_t batch = dims[0], channels = dims[1];
  const int64_t elements = call.inputs[0].shape().num_elements().value();
  return {.axes = ReducedAxes({batch * groups, elements / (batch * groups)}, {false, true}),
          .epsilon = call.attributes.real("epsilon"),
          .epsilon_outside = false,
          .channels = channels,
          .plane = elements / (batch * channels)};
}

std::string why_not_groups(const KernelCall& call, int64_t groups) {
  std::string reason = why_not_f32(call);
  if (!reason.empty()) return reason;
  return channel_groups(call, groups).axes.is_row ? "" : "groups of one element";
}

std::string why_not_instance(const KernelCall& call) { return why_not_groups(call, call.inputs[0].shape()[1].value()); }

Prepared prepare_instance(const KernelCall& call) {
  return {std::make_unique<GroupNormalizationKernel>(channel_groups(call, call.input_dims(0)[1]), call.threads), ""};
}

std::string why_not_group(const KernelCall& call) {
  if (call.attributes.get<DType>("stash_type") != DType::f32) return "statistics other than f32";
  return why_not_groups(call, call.attributes.integer("num_groups"));
}

Prepared prepare_group(const KernelCall& call) {
  GroupNormalization groups = channel_groups(call, call.attributes.integer("num_groups"));
  return {std::make_unique<GroupNormalizationKernel>(std::move(groups), call.threads), ""};
}

GroupNormalization averaged_axes(const KernelCall& call) {
  const Dims dims = call.input_dims(0);
  ReducedAxes axes(dims, axis_flags(call.attributes.integers("axes"), dims.size()));
  const int64_t run = axes.run;
  // The constant of the op's definition.
  return {.axes = std::move(axes), .epsilon = 1e-9, .epsilon_outside = true, .channels = 0, .plane = run};
}

std::string why_not_mean_variance(const KernelCall& call) {
  std::string reason = why_not_f32(call);
  if (!reason.empty()) return reason;
  return averaged_axes(call).axes.is_row ? "" : "the innermost axis is not averaged over";
}

Prepared prepare_mean_variance(const KernelCall& call) {
  return {std::make_unique<GroupNormalizationKernel>(averaged_axes(call), call.threads), ""};
}

}  // namespace

std::vector<KernelDef> plane_normalization_kernels() {
  return {{"cpu.instance_normalization_simd", instance_normalization_def().name, why_not_instance, prepare_instance},
          {"cpu.group_normalization_simd", group_normalization_def().name, why_not_group, prepare_group},
          {"cpu.mean_variance_normalization_simd", mean_variance_normalization_def().name, why_not_mean_variance,
           prepare_mean_variance}};
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

#include "backends/cpu/simd/conv/grouped_conv_loops.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/simd/conv/grouped_conv_loops.cpp"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace autograph::simd::HWY_NAMESPACE {

int64_t num_float_lanes() {
  return static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(hwy::HWY_NAMESPACE::ScalableTag<float>()));
}

}  // namespace autograph::simd::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace autograph::simd {

HWY_EXPORT(num_float_lanes);
namespace {

int64_t num_lanes() { return HWY_DYNAMIC_DISPATCH(num_float_lanes)(); }

}  // namespace

bool has_grouped_conv(const GroupedConvShape& shape) {
  const int64_t lanes = num_lanes();
  const bool has_taps = shape.kernel[1] == 3 || shape.kernel[1] == 5 || shape.kernel[1] == 7;
  const bool fits_groups = (shape.group_size % lanes == 0 || lanes % shape.group_size == 0) &&
                           (shape.block % shape.group_size == 0 || shape.group_size % shape.block == 0);
  // Vectors do not cross blocks; the last one of many channels may overlap the one before.
  const bool fits_block = shape.block % lanes == 0 || (shape.block == shape.channels && shape.channels >= lanes);
  return has_taps && fits_groups && fits_block && shape.stride[1] <= 2;
}

int64_t packed_grouped_conv_size(const GroupedConvShape& shape) {
  return shape.num_vectors(num_lanes()) * num_lanes() * (1 + shape.taps());
}

void pack_grouped_conv(const GroupedConvShape& shape, const float* weights, const float* bias, float* packed) {
  const int64_t lanes = num_lanes();
  const int64_t taps = shape.taps();
  for (int64_t v = 0; v < shape.num_vectors(lanes); ++v) {
    const int64_t channel = shape.first_channel(v, lanes);
    for (int64_t l = 0; l < lanes; ++l) *packed++ = bias ? bias[channel + l] : 0;
    for (int64_t k = 0; k < taps; ++k) {
      for (int64_t l = 0; l < lanes; ++l) *packed++ = weights[(channel + l) * taps + k];
    }
  }
}

void run_grouped_conv(const GroupedConvTask& task) {
  if (task.shape.group_size == 1) return run_depthwise(task);
  return task.shape.group_size < num_lanes() ? run_small_groups(task) : run_large_groups(task);
}

}  // namespace autograph::simd
#endif  // HWY_ONCE

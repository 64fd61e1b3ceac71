// What the kernels of attention and of its gradient read from a call.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/core.h>

#include "autograph/kernel.h"
#include "ops/attention/head_layout.h"

namespace autograph::simd {

/// Which keys a query sees, and how scores are scaled.
struct ScoreSettings {
  ScoreSettings(const Attributes& attributes, int64_t head_size)
      : scale(attributes.get_or<float>("scale", 1 / std::sqrt(static_cast<float>(head_size)))),
        softcap(std::max(attributes.real("softcap"), 0.0F)) {
    constexpr int64_t kFar = int64_t{1} << 40;
    const int64_t left = attributes.integer("left_window_size"), right = attributes.integer("right_window_size");
    visible_before = left < 0 ? kFar : left;
    visible_after = right < 0 ? kFar : right;
    if (attributes.flag("is_causal")) visible_after = 0;
  }
  float scale;
  float softcap;                          ///< 0: none
  int64_t visible_before, visible_after;  ///< How far a query sees to both sides.
};

/// Where the rows of a mask lie.
struct MaskLayout {
  MaskLayout() = default;
  explicit MaskLayout(const Type& type) {
    const Dims dims = type.shape().static_dims();
    keys = dims.back();
    is_bool = type.dtype() == DType::boolean;
    int64_t stride = keys;
    int64_t* targets[] = {&query_stride, &head_stride, &batch_stride};
    for (size_t back = 2; back <= dims.size(); ++back) {
      const int64_t extent = dims[dims.size() - back];
      *targets[back - 2] = extent == 1 ? 0 : stride;
      stride *= extent;
    }
  }
  bool is_given() const { return keys >= 0; }
  const void* row(const TensorView& mask, int64_t b, int64_t head, int64_t query) const {
    const int64_t at = b * batch_stride + head * head_stride + query * query_stride;
    return static_cast<const char*>(mask.raw()) + at * (is_bool ? 1 : static_cast<int64_t>(sizeof(float)));
  }
  int64_t keys = -1, query_stride = 0, head_stride = 0, batch_stride = 0;
  bool is_bool = false;
};

/// Why a kernel in f32 does not take a call whose first `count` inputs are floats and whose mask is input `mask`.
inline std::string why_not_attention(const KernelCall& call, size_t count, size_t mask) {
  for (size_t slot = 0; slot < count; ++slot) {
    if (call.inputs[slot].dtype() != DType::f32) return "only f32";
    if (call.inputs[slot].shape().num_elements() == 0) return "a tensor without elements";
  }
  if (!call.has_input(mask)) return "";
  if (call.inputs[mask].shape().num_elements() == 0) return "a mask without elements";
  const DType dtype = call.inputs[mask].dtype();
  return dtype == DType::f32 || dtype == DType::boolean ? "" : fmt::format("a mask of {}", to_string(dtype));
}

}  // namespace autograph::simd

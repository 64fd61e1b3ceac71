#include "backends/cpu/simd/broadcast_axes.h"

namespace autograph::simd {
namespace {

// Do all inputs walk from the end of `inner` to the next step of `outer` without a jump?
bool can_merge(const BroadcastAxis& outer, const BroadcastAxis& inner, size_t num_inputs) {
  for (size_t k = 0; k < num_inputs; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

}  // namespace

std::vector<BroadcastAxis> broadcast_axes(const KernelCall& call) {
  const Dims out = call.output_dims(0);
  std::vector<BroadcastAxis> all(out.size());
  for (size_t a = 0; a < out.size(); ++a) all[a].extent = out[a];
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    if (!call.has_input(k)) continue;
    const Dims in = call.input_dims(k);
    // Bounds of shape [1] may stand beside a scalar; they broadcast anyway.
    if (in.size() > out.size()) continue;
    int64_t stride = 1;
    for (size_t a = in.size(); a-- > 0;) {
      if (in[a] != 1) all[a + out.size() - in.size()].strides[k] = stride;
      stride *= in[a];
    }
  }
  std::vector<BroadcastAxis> axes;
  for (const BroadcastAxis& axis : all) {
    if (axis.extent == 1) continue;
    if (!axes.empty() && can_merge(axes.back(), axis, call.inputs.size())) {
      const int64_t extent = axes.back().extent * axis.extent;
      axes.back() = axis;
      axes.back().extent = extent;
    } else {
      axes.push_back(axis);
    }
  }
  if (axes.empty()) axes.emplace_back();
  return axes;
}

RowCursor::RowCursor(const std::vector<BroadcastAxis>& axes, int64_t row) : axes_(axes) {
  for (size_t a = axes.size() - 1; a-- > 0;) {
    index_[a] = row % axes[a].extent;
    row /= axes[a].extent;
    for (size_t k = 0; k < kMaxInputs; ++k) offsets_[k] += index_[a] * axes[a].strides[k];
  }
}

void RowCursor::advance() {
  for (size_t a = axes_.size() - 1; a-- > 0;) {
    const bool carries = ++index_[a] == axes_[a].extent;
    const int64_t steps = carries ? 1 - axes_[a].extent : 1;
    for (size_t k = 0; k < kMaxInputs; ++k) offsets_[k] += steps * axes_[a].strides[k];
    if (!carries) return;
    index_[a] = 0;
  }
}

}  // namespace autograph::simd

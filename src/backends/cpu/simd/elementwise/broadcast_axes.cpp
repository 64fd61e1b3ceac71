#include "backends/cpu/simd/elementwise/broadcast_axes.h"

namespace autograph::simd {
namespace {

// Do all inputs walk from the end of `inner` to the next step of `outer` without a jump?
bool can_merge(const BroadcastAxis& outer, const BroadcastAxis& inner, size_t num_inputs) {
  for (size_t k = 0; k < num_inputs; ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

// The axes in the order of the layout; `axes` are in the order of the dims.
void reorder_axes(Layout layout, std::vector<BroadcastAxis>& axes) {
  if (layout == Layout::row_major) return;
  const BroadcastAxis channels = axes[1];
  const int64_t block = channel_block(layout);
  if (block == 1) {
    axes.erase(axes.begin() + 1);
    axes.push_back(channels);
    return;
  }
  axes.push_back(channels);
  axes.back().extent = block;
  axes[1].extent /= block;
  for (int64_t& stride : axes[1].strides) stride *= block;
}

}  // namespace

std::vector<BroadcastAxis> broadcast_axes(const Dims& output, Layout layout,
                                          const std::vector<std::optional<BroadcastInput>>& inputs) {
  std::vector<BroadcastAxis> all(output.size());
  for (size_t a = 0; a < output.size(); ++a) all[a].extent = output[a];
  for (size_t k = 0; k < inputs.size(); ++k) {
    // A bound of shape [1] may stand beside a scalar; it broadcasts anyway.
    if (!inputs[k] || inputs[k]->dims.size() > output.size()) continue;
    const Dims& in = inputs[k]->dims;
    int64_t stride = 1;
    for (size_t a = in.size(); a-- > 0;) {
      if (in[a] != 1) all[a + output.size() - in.size()].strides[k] = stride;
      stride *= in[a];
    }
  }
  reorder_axes(layout, all);
  for (size_t k = 0; k < inputs.size(); ++k) {
    if (!inputs[k] || !inputs[k]->like_output) continue;
    int64_t stride = 1;
    for (size_t a = all.size(); a-- > 0;) {
      all[a].strides[k] = all[a].extent == 1 ? 0 : stride;
      stride *= all[a].extent;
    }
  }
  std::vector<BroadcastAxis> axes;
  for (const BroadcastAxis& axis : all) {
    if (axis.extent == 1) continue;
    if (!axes.empty() && can_merge(axes.back(), axis, inputs.size())) {
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

RowCursor::RowCursor(const std::vector<BroadcastAxis>& axes, size_t num_inputs, int64_t row)
    : axes_(axes), num_inputs_(num_inputs) {
  for (size_t a = axes.size() - 1; a-- > 0;) {
    index_[a] = row % axes[a].extent;
    row /= axes[a].extent;
    for (size_t k = 0; k < num_inputs_; ++k) offsets_[k] += index_[a] * axes[a].strides[k];
  }
}

int64_t RowCursor::rows_in_run() const {
  const size_t outer = axes_.size() - 1;
  return outer == 0 ? 1 : axes_[outer - 1].extent - index_[outer - 1];
}

void RowCursor::advance(int64_t rows) {
  for (size_t a = axes_.size() - 1; a-- > 0; rows = 1) {
    index_[a] += rows;
    const bool carries = index_[a] == axes_[a].extent;
    const int64_t steps = carries ? rows - axes_[a].extent : rows;
    for (size_t k = 0; k < num_inputs_; ++k) offsets_[k] += steps * axes_[a].strides[k];
    if (!carries) return;
    index_[a] = 0;
  }
}

}  // namespace autograph::simd

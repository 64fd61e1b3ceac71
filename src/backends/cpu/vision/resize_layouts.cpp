#include "backends/cpu/vision/resize_layouts.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "backends/cpu/known_inputs.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

std::vector<ResizeAxis> axes_of(const KernelCall& call) {
  return resize_axes(call.attributes, call.input_dims(0), call.output_dims(0),
                     {known_input(call, 1), known_input(call, 2), known_input(call, 3)});
}

ResizeAxis axis_that_stays(int64_t extent) { return {.in = extent, .out = extent}; }

}  // namespace

std::vector<ResizeAxis> axes_in_memory(const KernelCall& call) {
  std::vector<ResizeAxis> axes = axes_of(call);
  const Layout layout = call.variant ? call.variant->input(0) : Layout::row_major;
  if (layout == Layout::row_major) return axes;
  const int64_t block = channel_block(layout);
  if (block == 1) {
    std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
    return axes;
  }
  const int64_t channels = axes[1].in;
  axes[1] = axis_that_stays(channels / block);
  axes.push_back(axis_that_stays(block));
  return axes;
}

std::vector<KernelVariant> resize_variants(const KernelCall& call, double bytes_per_us, double gain) {
  constexpr double kStartUs = 1;
  const double us = static_cast<double>(size_of(call.outputs[0])) / bytes_per_us / call.threads;
  std::vector<KernelVariant> result{{.name = "", .inputs = {}, .outputs = {}, .cost_us = kStartUs + us}};
  if (call.inputs[0].dtype() != DType::f32) return result;
  const std::vector<ResizeAxis> axes = axes_of(call);
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    if (!fits_rank(layout, axes.size())) continue;
    const int64_t block = channel_block(layout);
    if (block > 1 && (!axes[1].is_identity() || axes[1].in % block != 0)) continue;
    result.push_back({.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = kStartUs + us / gain});
  }
  return result;
}

}  // namespace autograph

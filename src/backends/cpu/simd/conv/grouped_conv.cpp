// conv in groups of few channels, depthwise among them, with one or two spatial dims, bias and an epilogue.
//
// oneDNN computes groups of less than a vector's width one lane after the other, and its depthwise kernels load every
// input once per window it lies in.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/channel_scale.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/conv_steps.h"
#include "backends/cpu/simd/conv/grouped_conv_loops.h"
#include "backends/cpu/simd/kernels.h"
#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/weights_kernel.h"
#include "ops/defs.h"
#include "ops/window/window_geometry.h"

namespace autograph::simd {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;
// Larger groups keep their weights in the first cache no more; oneDNN is good at them.
constexpr int64_t kMaxGroupSize = 64;

// The shape with all dilations 1, as given in `layout`; one spatial dim is a row.
GroupedConvShape shape_of(const AnchoredCall& conv, Layout layout) {
  const Dims x = conv.dims(kX);
  const Dims w = conv.dims(kW);
  const auto axes = resolve_windows(window_spec(conv.attributes(), Dims(w.begin() + 2, w.end())),
                                    std::span<const int64_t>(x).subspan(2));
  GroupedConvShape shape{.channels = x[1],
                         .group_size = w[1],
                         .block = layout == Layout::channels_last ? x[1] : channel_block(layout),
                         .in = {1, 1},
                         .out = {1, 1},
                         .kernel = {1, 1},
                         .stride = {1, 1}};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t a = i + 2 - axes.size();
    shape.in[a] = axes[i].in;
    shape.out[a] = axes[i].out;
    shape.kernel[a] = axes[i].kernel;
    shape.stride[a] = axes[i].stride;
    shape.pad[a] = axes[i].pad_begin;
  }
  return shape;
}

std::vector<Layout> layouts(const AnchoredCall& conv) {
  std::vector<Layout> result;
  for (const Layout layout : {Layout::channels_last, Layout::blocked16, Layout::blocked8}) {
    // Padding would have to stay zero, which not every epilogue gives.
    if (conv.dims(kX)[1] % channel_block(layout) != 0) continue;
    if (has_grouped_conv(shape_of(conv, layout))) result.push_back(layout);
  }
  return result;
}

std::string why_not(const KernelCall& call) {
  const auto conv = read_conv(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const Dims x = conv->dims(kX);
  const Dims w = conv->dims(kW);
  const int64_t group = conv->attributes().integer("group");
  if (x.size() < 3 || x.size() > 4) return "1 or 2 spatial dims only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (group == 1 || w[0] != x[1] || w[1] > kMaxGroupSize) return "not in groups of few channels, as many out as in";
  if (std::string reason = why_not_known_weights(*conv); !reason.empty()) return reason;
  const auto dilations = conv->attributes().get_or<std::vector<int64_t>>("dilations", {});
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) return "dilation";
  if (layouts(*conv).empty()) return "a shape without loops";
  return read_conv_steps(*conv, read_channel_scale(*conv).num_ops).refusal;
}

// Depends on weights and bias alone.
WeightForm form_of(const GroupedConvShape& shape) {
  return {"grouped_conv_simd", packed_grouped_conv_size(shape),
          [shape](const std::vector<Tensor>& elements, float* to) {
            const float* bias = elements[1].is_present() ? elements[1].data<float>() : nullptr;
            pack_grouped_conv(shape, elements[0].data<float>(), bias, to);
          }};
}

class GroupedConvKernel : public WeightsKernel {
 public:
  GroupedConvKernel(const KernelCall& call, const AnchoredCall& conv)
      : shape_(shape_of(conv, call.variant->output(0))),
        scale_(read_channel_scale(conv)),
        steps_(read_conv_steps(conv, scale_.num_ops)),
        batch_(conv.dims(kX)[0]),
        x_slot_(static_cast<size_t>(conv.operand(kX).input)),
        packed_(packed(call, {KnownWeight::of(conv.operand(kW)), KnownWeight::of(conv.operand(kB))},
                       scale_.of_weights(form_of(shape_)))) {
    threads_ = useful_threads(call.threads, batch_ * out_size() * (1 + shape_.taps() / 4));
  }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[x_slot_].data<float>();
    float* y = static_cast<float*>(const_cast<void*>(args.outputs[0].raw()));
    const ConvResiduals residuals(steps_, args);
    // Pairs of rows share what they load.
    const int64_t pairs = (shape_.out[0] + 1) / 2;
    for_shares(threads_, batch_ * pairs, [&](int64_t begin, int64_t end, int) {
      while (begin < end) {
        const int64_t instance = begin / pairs;
        const int64_t last = std::min(end, (instance + 1) * pairs);
        const int64_t row = 2 * (begin - instance * pairs);
        const int64_t end_row = std::min(shape_.out[0], 2 * (last - instance * pairs));
        run_grouped_conv({.shape = shape_,
                          .x = x + instance * in_size(),
                          .weights = packed_.data(),
                          .residuals = residuals + instance * out_size(),
                          .y = y + instance * out_size(),
                          .steps = steps_.list,
                          .first_row = row,
                          .rows = end_row - row});
        begin = last;
      }
    });
  }
  bool reads_input(size_t slot) const override { return slot == x_slot_ || steps_.reads(slot); }

 private:
  int64_t in_size() const { return shape_.channels * shape_.in[0] * shape_.in[1]; }
  int64_t out_size() const { return shape_.channels * shape_.out[0] * shape_.out[1]; }

  GroupedConvShape shape_;
  ChannelScale scale_;
  ConvSteps steps_;
  int64_t batch_;
  size_t x_slot_;
  const PackedWeights& packed_;
  int threads_ = 1;
};

Prepared prepare(const KernelCall& call) {
  const auto conv = read_conv(call);
  return {std::make_unique<GroupedConvKernel>(call, *conv), ""};
}

// Part of the peak that is reached in networks (AVX-512), where inputs come from the caches of other threads.
double efficiency_of(const GroupedConvShape& shape) {
  if (shape.group_size == 1) return shape.stride[1] > 1 ? 0.2 : shape.kernel[1] > 3 ? 0.35 : 0.22;
  if (shape.stride[1] > 1) return 0.45;
  return shape.group_size < 16 ? 0.7 : 0.8;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kFlopsPerUsAndThread = 130e3;
  constexpr double kBytesPerUs = 20e3;
  const auto conv = read_conv(call);
  const KernelCall anchor = conv->anchor_call(call.threads);
  const OpCost cost = cost_of(conv->op(), {conv->attributes(), anchor.inputs, anchor.outputs});
  const double efficiency = efficiency_of(shape_of(*conv, Layout::channels_last));
  const double us =
      kStartUs + cost.flops / (kFlopsPerUsAndThread * call.threads * efficiency) + cost.bytes / kBytesPerUs;
  return conv_variants(call, *conv, read_conv_steps(*conv, read_channel_scale(*conv).num_ops), layouts(*conv), us);
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.grouped_conv_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> grouped_conv_kernels() { return {kernel_for(conv_def().name), kernel_for(fused_def().name)}; }

}  // namespace autograph::simd

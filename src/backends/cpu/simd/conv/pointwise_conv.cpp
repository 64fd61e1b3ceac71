// conv with 1x1 weights in one group on channels_last activations, with bias and an epilogue.
//
// oneDNN generates code for each shape, which takes longer than to run a small layer once; these loops serve any.
// Pixels are taken in blocks that fit the second cache and input channels in blocks that fit the first.
#include <algorithm>
#include <vector>

#include "autograph/op_def.h"
#include "backends/cpu/anchored_call.h"
#include "backends/cpu/channel_scale.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/simd/conv/pointwise_conv_loops.h"
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

// One spatial dim is a row.
struct PointwiseShape {
  int64_t batch = 0;
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  std::array<int64_t, 2> in{1, 1};
  std::array<int64_t, 2> out{1, 1};
  std::array<int64_t, 2> stride{1, 1};

  int64_t pixels() const { return batch * out[0] * out[1]; }
  bool skips_pixels() const { return stride[0] > 1 || stride[1] > 1; }
  double flops() const { return 2.0 * static_cast<double>(pixels() * in_channels) * static_cast<double>(out_channels); }
};

PointwiseShape shape_of(const AnchoredCall& conv) {
  const Dims x = conv.dims(kX);
  const Dims w = conv.dims(kW);
  const auto axes = resolve_windows(window_spec(conv.attributes(), Dims(w.begin() + 2, w.end())),
                                    std::span<const int64_t>(x).subspan(2));
  PointwiseShape shape{.batch = x[0], .in_channels = x[1], .out_channels = w[0]};
  for (size_t i = 0; i < axes.size(); ++i) {
    const size_t a = i + 2 - axes.size();
    shape.in[a] = axes[i].in;
    shape.out[a] = axes[i].out;
    shape.stride[a] = axes[i].stride;
  }
  return shape;
}

bool has_pads(const AnchoredCall& conv) {
  const Dims x = conv.dims(kX), w = conv.dims(kW);
  const auto axes = resolve_windows(window_spec(conv.attributes(), Dims(w.begin() + 2, w.end())),
                                    std::span<const int64_t>(x).subspan(2));
  return std::any_of(axes.begin(), axes.end(),
                     [](const auto& axis) { return axis.pad_begin != 0 || (axis.out - 1) * axis.stride >= axis.in; });
}

std::string why_not(const KernelCall& call) {
  const auto conv = read_conv(call);
  if (!conv) return "not a convolution with a chain of elementwise ops behind it";
  const Dims x = conv->dims(kX), w = conv->dims(kW);
  if (x.size() != 3 && x.size() != 4) return "one or two spatial dims only";
  if (!std::all_of(w.begin() + 2, w.end(), [](int64_t extent) { return extent == 1; })) return "1x1 only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  if (conv->attributes().integer("group") != 1) return "groups";
  if (conv->output().shape().num_elements().value_or(0) == 0 || w[1] == 0) return "an empty tensor";
  if (has_pads(*conv)) return "pads";
  if (std::string reason = why_not_known_weights(*conv); !reason.empty()) return reason;
  return read_conv_steps(*conv, read_channel_scale(*conv).num_ops).refusal;
}

class PointwiseKernel : public WeightsKernel {
 public:
  PointwiseKernel(const KernelCall& call, const AnchoredCall& conv)
      : shape_(shape_of(conv)),
        scale_(read_channel_scale(conv)),
        steps_(read_conv_steps(conv, scale_.num_ops)),
        x_slot_(static_cast<size_t>(conv.operand(kX).input)),
        threads_(useful_threads(call.threads, static_cast<int64_t>(std::min(shape_.flops() / kFlopsOfWork, 1e15)))),
        panels_(pointwise_panels(shape_.out_channels)),
        packed_(packed(call, {KnownWeight::of(conv.operand(kW))}, scale_.of_weights(form()))),
        bias_(packed(call, {KnownWeight::of(conv.operand(kB))}, scale_.of_bias(panels_ * pointwise_panel_width()))) {}

  size_t scratch_bytes() const override {
    return shape_.skips_pixels() ? static_cast<size_t>(shape_.pixels() * shape_.in_channels) * sizeof(float) : 0;
  }
  size_t spaced_row_bytes() const override { return static_cast<size_t>(shape_.out_channels) * sizeof(float); }
  bool reads_input(size_t slot) const override { return slot == x_slot_ || steps_.reads(slot); }

  void run(const KernelArgs& args) const override {
    const float* x = args.inputs[x_slot_].data<float>();
    if (shape_.skips_pixels()) x = gather_pixels(x, static_cast<float*>(args.scratch));
    share_pointwise({.in_channels = shape_.in_channels,
                     .out_channels = shape_.out_channels,
                     .panels = packed_.data(),
                     .bias = bias_.data(),
                     .x = x,
                     .x_stride = shape_.in_channels,
                     .residuals = {steps_, args},
                     .y = static_cast<float*>(const_cast<void*>(args.outputs[0].raw())),
                     .y_stride = static_cast<int64_t>(args.row_stride / sizeof(float)),
                     .pixels = shape_.pixels(),
                     .steps = steps_.list},
                    threads_);
  }

 private:
  // Flops in the time that one element takes (parallel.h).
  static constexpr double kFlopsOfWork = 16;

  WeightForm form() const {
    return {"pointwise_conv_simd", panels_ * pointwise_panel_width() * shape_.in_channels,
            [out = shape_.out_channels, in = shape_.in_channels](const std::vector<Tensor>& w, float* to) {
              pack_pointwise_weights(w[0].data<float>(), out, in, to);
            }};
  }

  // The pixels that have outputs, one behind the other.
  const float* gather_pixels(const float* x, float* to) const {
    const int64_t c = shape_.in_channels;
    for_shares(threads_, shape_.batch * shape_.out[0], [&](int64_t begin, int64_t end, int) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t image = row / shape_.out[0], top = row % shape_.out[0] * shape_.stride[0];
        const float* from = x + (image * shape_.in[0] + top) * shape_.in[1] * c;
        float* at = to + row * shape_.out[1] * c;
        for (int64_t i = 0; i < shape_.out[1]; ++i) std::copy_n(from + i * shape_.stride[1] * c, c, at + i * c);
      }
    });
    return to;
  }

  PointwiseShape shape_;
  ChannelScale scale_;
  ConvSteps steps_;
  size_t x_slot_;
  int threads_;
  int64_t panels_;
  const PackedWeights &packed_, &bias_;
};

Prepared prepare(const KernelCall& call) {
  const auto conv = read_conv(call);
  return {std::make_unique<PointwiseKernel>(call, *conv), ""};
}

// How much longer the last panel takes for each of its columns, those that are missing among them.
double last_panel_slowdown(int64_t vectors, int64_t vectors_of_panel) {
  constexpr double kOne = 1.5, kFew = 1.1;
  return vectors == vectors_of_panel ? 1 : vectors == 1 ? kOne : kFew;
}

// Level with oneDNN's kernels in the same layout (conv_cost.cpp), and ahead where few pixels meet weights that are
// not near.
double slowdown(const KernelCall& call, const PointwiseShape& shape) {
  constexpr int64_t kFewPixels = 96, kMorePixels = 320;
  constexpr double kFew = 0.8, kFewNear = 0.95, kMore = 0.97, kMany = 1.03;
  constexpr size_t kFewBytes = size_t{640} << 10, kMoreBytes = size_t{1536} << 10;
  const size_t bytes = static_cast<size_t>(shape.in_channels * shape.out_channels) * sizeof(float);
  if (are_weights_near(call, bytes)) return kMany;
  if (shape.pixels() <= kFewPixels) return bytes >= kFewBytes ? kFew : kFewNear;
  return shape.pixels() <= kMorePixels && bytes >= kMoreBytes ? kMore : kMany;
}

double cost_us(const KernelCall& call, const AnchoredCall& conv) {
  constexpr double kStartUs = 3;
  constexpr double kFlopsPerUsAndThread = 97e3;
  constexpr double kBytesPerUs = 20e3;
  const KernelCall anchor = conv.anchor_call(call.threads);
  const OpCost cost = cost_of(conv.op(), {conv.attributes(), anchor.inputs, anchor.outputs});
  const int64_t channels = conv.dims(kW)[0], lanes = pointwise_vector_width(), most = pointwise_panel_width() / lanes;
  const int64_t vectors = (channels + lanes - 1) / lanes, last = (vectors - 1) % most + 1;
  const double columns =
      (static_cast<double>(vectors - last) + last_panel_slowdown(last, most) * static_cast<double>(last)) *
      static_cast<double>(lanes);
  const double compute_us =
      cost.flops * columns / static_cast<double>(channels) / (kFlopsPerUsAndThread * call.threads);
  return kStartUs + slowdown(call, shape_of(conv)) * (compute_us + cost.bytes / kBytesPerUs);
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const auto conv = read_conv(call);
  constexpr Layout kLayouts[] = {Layout::channels_last};
  const ConvSteps steps = read_conv_steps(*conv, read_channel_scale(*conv).num_ops);
  std::vector<KernelVariant> list = conv_variants(call, *conv, steps, kLayouts, cost_us(call, *conv));
  // With a residual the copy that this saves is outweighed by kernels that add to it in place.
  for (KernelVariant& variant : list) variant.spaces_rows = steps.residuals.empty();
  return list;
}

KernelDef kernel_for(std::string_view op) {
  return {.name = "cpu.pointwise_conv_simd", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace

std::vector<KernelDef> pointwise_conv_kernels() { return {kernel_for(conv_def().name), kernel_for(fused_def().name)}; }

}  // namespace autograph::simd

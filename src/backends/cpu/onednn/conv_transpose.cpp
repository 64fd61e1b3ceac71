// conv_transpose with one to three spatial dims, groups and dilation: oneDNN's deconvolution.
//
// oneDNN adds the bias in a pass of its own that takes as long as the products, so it is added here.
#include "backends/cpu/multiversion.h"
#include "backends/cpu/onednn/convolution_turn.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"
#include "ops/window/conv_transpose_windows.h"

namespace autograph::onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

AG_MULTIVERSION void add_number(float* y, float value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += value;
}

AG_MULTIVERSION void add_row(float* y, const float* row, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] += row[i];
}

// A primitive, and its output plus a number per channel.
class WithBias : public Kernel {
 public:
  WithBias(const KernelCall& call, std::unique_ptr<Kernel> inner)
      : layout_(call.variant->output(0)), inner_(std::move(inner)) {
    const Dims y = padded_dims(layout_, call.output_dims(0));
    batch_ = y[0];
    channels_ = y[1];
    given_ = call.output_dims(0)[1];
    for (size_t a = 2; a < y.size(); ++a) plane_ *= y[a];
    threads_ = useful_threads(call.threads, batch_ * channels_ * plane_);
  }

  size_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  size_t weight_bytes() const override { return inner_->weight_bytes(); }
  bool reads_input(size_t slot) const override { return slot == kB || inner_->reads_input(slot); }
  std::unique_ptr<KernelState> new_state() const override { return inner_->new_state(); }

  void run(const KernelArgs& args) const override {
    inner_->run(args);
    const float* bias = args.inputs[kB].data<float>();
    float* y = args.outputs[0].mutable_data<float>();
    // Channels that stand next to each other: all of them, a block, one.
    const int64_t width = layout_ == Layout::channels_last ? channels_ : channel_block(layout_);
    for_shares(threads_, batch_ * channels_ / width * plane_, [&](int64_t begin, int64_t end, int) {
      for (int64_t at = begin; at < end;) {
        const int64_t first = at / plane_ * width % channels_;
        const int64_t count = std::min(end, (at / plane_ + 1) * plane_) - at;
        if (width == 1) {
          add_number(y + at, bias[first], count);
        } else {
          const int64_t used = std::min(width, given_ - first);
          for (int64_t i = at; i < at + count; ++i) add_row(y + i * width, bias + first, used);
        }
        at += count;
      }
    });
  }

 private:
  const Layout layout_;
  std::unique_ptr<Kernel> inner_;
  int64_t batch_ = 1, channels_ = 1, given_ = 1, plane_ = 1;
  int threads_ = 1;
};

// oneDNN's dims [group, M / group, C / group, kernel...] in the order of ONNX's [C, M / group, kernel...].
dnnl::memory::desc given_weights(const KernelCall& call) {
  const int64_t group = call.attributes.integer("group");
  const Dims w = call.input_dims(kW);
  dnnl::memory::dims dims{group, w[1], w[0] / group};
  int64_t taps = 1;
  for (size_t a = 2; a < w.size(); ++a) taps *= w[a];
  dnnl::memory::dims strides{w[0] / group * w[1] * taps, taps, w[1] * taps};
  for (size_t a = 2; a < w.size(); ++a) {
    dims.push_back(w[a]);
    strides.push_back(strides.back());
  }
  int64_t stride = 1;
  for (size_t a = w.size(); a-- > 2; stride *= w[a]) strides[a + 1] = stride;
  if (group > 1) return {dims, DataType::f32, strides};
  return {dnnl::memory::dims(dims.begin() + 1, dims.end()), DataType::f32,
          dnnl::memory::dims(strides.begin() + 1, strides.end())};
}

using Descriptor = dnnl::deconvolution_forward::primitive_desc;

Descriptor describe(const KernelCall& call, Layout layout) {
  const Dims x = call.input_dims(kX), w = call.input_dims(kW), y = call.output_dims(0);
  dnnl::memory::dims strides, dilates, pads_begin, pads_end;
  for (const WindowAxis& axis : conv_transpose_windows(call.attributes, x, w)) {
    strides.push_back(axis.stride);
    dilates.push_back(axis.dilation - 1);
    pads_begin.push_back(axis.pad_begin);
    // What is cut off at the end so that the result has this extent; output_padding cuts off less.
    pads_end.push_back((axis.out - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1 - axis.pad_begin - axis.in);
  }
  const dnnl::deconvolution_forward::desc desc(
      dnnl::prop_kind::forward_inference, dnnl::algorithm::deconvolution_direct, desc_in(layout, x),
      any_layout(given_weights(call).dims()), desc_in(layout, y), strides, dilates, pads_begin, pads_end);
  const ConvolutionTurn turn(DataType::f32);
  return {desc, new_attributes(), cpu_engine()};
}

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const Layout layout = call.variant->input(0);
    const Descriptor pd = describe(call, layout);
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, false, kX, desc_in(layout, call.input_dims(kX)), pd.src_desc()},
        {DNNL_ARG_WEIGHTS, false, kW, given_weights(call), pd.weights_desc(),
         call.constant(kW) ? *call.constant(kW) : Tensor()},
        {DNNL_ARG_DST, true, 0, desc_in(layout, call.output_dims(0)), pd.dst_desc()},
    };
    auto kernel = std::make_unique<PrimitiveKernel>(dnnl::deconvolution_forward(pd), std::move(arguments),
                                                    pd.scratchpad_desc(), call.packed);
    if (!call.has_input(kB)) return kernel;
    return std::make_unique<WithBias>(call, std::move(kernel));
  });
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kFlopsPerUsAndThread = 75e3;
  constexpr double kRowMajorPenalty = 1.5;
  constexpr double kStartUs = 3;
  const double us =
      cost_of(call.op, {call.attributes, call.inputs, call.outputs}).flops / (kFlopsPerUsAndThread * call.threads);
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::row_major, native_block(), Layout::channels_last}) {
    try {
      const std::string name = describe(call, layout).impl_info_str();
      if (name.find("ref") != std::string::npos) continue;
      result.push_back({.name = name,
                        .inputs = {layout},
                        .outputs = {layout},
                        .cost_us = kStartUs + us * (layout == Layout::row_major ? kRowMajorPenalty : 1)});
    } catch (const dnnl::error&) {
      // oneDNN has nothing for this layout.
    }
  }
  return result;
}

}  // namespace

KernelDef conv_transpose_kernel() {
  return {.name = "cpu.conv_transpose_onednn",
          .op = conv_transpose_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::onednn

// conv_transpose with one to three spatial dims, groups and dilation: oneDNN's backward convolution by data, of which
// its deconvolution is the first implementation that fits.
//
// The bias is added here: a deconvolution takes as long for it as for the products.
#include <algorithm>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/onednn/conv/backward_convolution.h"
#include "backends/cpu/onednn/conv/backward_cost.h"
#include "backends/cpu/onednn/conv/conv_windows.h"
#include "backends/cpu/onednn/implementation_lists.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "backends/cpu/threads/parallel.h"
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

using Descriptor = dnnl::convolution_backward_data::primitive_desc;

// A call in one layout, seen from the convolution whose input it gives the gradient of: that reads our y and makes x.
class DataGradient {
 public:
  DataGradient(const KernelCall& call, Layout layout)
      : layout_(layout),
        x_(call.input_dims(kX)),
        w_(grouped_weights(call.input_dims(kW), call.attributes.integer("group"))),
        y_(call.output_dims(0)) {
    // What is cut off at the end so that the result has this extent; output_padding cuts off less.
    for (const WindowAxis& axis : conv_transpose_windows(call.attributes, x_, call.input_dims(kW))) {
      windows_.add(axis, axis.reach() - axis.in);
    }
  }

  // What a descriptor is made from, which must live while that steps through implementations.
  struct Source {
    dnnl::convolution_backward_data::desc desc;
    dnnl::convolution_forward::primitive_desc forward;
  };

  // Throws dnnl::error where oneDNN has nothing for the layout.
  Source make_source() const {
    const dnnl::memory::desc x = desc_in(layout_, x_), y = desc_in(layout_, y_), w = any_layout(w_);
    const auto& [strides, dilates, pads_begin, pads_end] = windows_;
    return {{dnnl::algorithm::convolution_direct, y, w, x, strides, dilates, pads_begin, pads_end},
            {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, y, w, x, strides, dilates,
              pads_begin, pads_end},
             cpu_engine()}};
  }

  static Descriptor describe(const Source& source, Use use) {
    return {source.desc, new_attributes(use), cpu_engine(), source.forward};
  }

  static bool is_usable(std::string_view implementation) {
    return implementation.find("ref") == std::string_view::npos;
  }

  ProblemKind kind(int threads) const {
    constexpr int64_t kOfData = -2;  // told from forward convolutions, whose kinds begin with their threads
    ProblemKind kind;
    kind.add(kOfData).add(threads).add(static_cast<int64_t>(layout_));
    kind.add(w_).add(y_[1]).add_magnitudes(x_).add_magnitudes(y_);
    windows_.add_to(kind);
    return kind;
  }

  const dnnl::memory::dims& weight_dims() const { return w_; }

 private:
  Layout layout_;
  dnnl::memory::dims x_, w_, y_;  // w [C, M / group, kernel...], which is also how it is given
  WindowLists windows_;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const Layout layout = call.variant->input(0);
    const DataGradient gradient(call, layout);
    const ConvolutionTurn turn(DataType::f32);
    const auto source = gradient.make_source();
    auto [primitive, pd] = make_implementation<dnnl::convolution_backward_data>(
        call.variant->name, [&] { return gradient.describe(source, Use::run); });
    std::vector<Argument> arguments{
        {DNNL_ARG_DIFF_DST, false, kX, desc_in(layout, call.input_dims(kX)), pd.diff_dst_desc()},
        {DNNL_ARG_WEIGHTS, false, kW, row_major(gradient.weight_dims()), pd.weights_desc(),
         call.constant(kW) ? *call.constant(kW) : Tensor()},
        {DNNL_ARG_DIFF_SRC, true, 0, desc_in(layout, call.output_dims(0)), pd.diff_src_desc()},
    };
    auto kernel = std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), pd.scratchpad_desc(),
                                                    call.packed);
    if (!call.has_input(kB)) return kernel;
    return std::make_unique<WithBias>(call, std::move(kernel));
  });
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::row_major, native_block(), Layout::channels_last}) {
    const DataGradient gradient(call, layout);
    for (const std::string& name :
         implementations_for(gradient.kind(call.threads), [&] { return list_implementations(gradient); })) {
      result.push_back({.name = name,
                        .inputs = {layout},
                        .outputs = {layout},
                        .cost_us = backward_cost_us(cost, name, layout, call.threads)});
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

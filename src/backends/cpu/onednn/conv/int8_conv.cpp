// Convolutions of 8-bit numbers: `fused` bodies of dequantized convolutions, qlinear_conv, conv_integer.
//
// oneDNN's kernels want channels last. Row-major tensors are brought there and back inside.
#include <algorithm>
#include <set>
#include <string>

#include "autograph/op_def.h"
#include "backends/cpu/onednn/conv/conv_windows.h"
#include "backends/cpu/onednn/conv/convolution_turn.h"
#include "backends/cpu/onednn/int8.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph::onednn {
namespace {

constexpr size_t kChannelAxis = 1;
constexpr size_t kMaxImplementations = 3;

std::string why_not(const KernelCall& call) {
  std::string reason;
  const auto conv = read_int8(call, reason);
  if (!conv) return reason;
  if (!conv->is_conv()) return "not a convolution";
  if (conv->x_dims.size() < 3 || conv->x_dims.size() > 5) return "1 to 3 spatial dims only";
  return "";
}

dnnl::memory::dims weight_dims(const QuantizedCall& conv) {
  return grouped_weights(conv.w_dims, conv.attributes->integer("group"));
}

using Descriptor = dnnl::convolution_forward::primitive_desc;

class Convolution {
 public:
  explicit Convolution(const QuantizedCall& conv)
      : conv_(conv),
        x_type_(data_type_of(conv.x.dtype)),
        y_type_(data_type_of(conv.y.dtype)),
        bias_(int8_bias(conv)),
        windows_(*conv.attributes, conv.x_dims, conv.w_dims),
        desc_(make_desc()) {}

  // Its first implementation. While the result steps through others this object must live.
  Descriptor describe(Use use) const { return {desc_, int8_attributes(conv_, kChannelAxis, use), cpu_engine()}; }
  bool is_usable(std::string_view implementation) const {
    return windows_.allow(implementation) && !may_overflow(conv_, implementation);
  }

  std::unique_ptr<Kernel> make(std::string_view implementation, Layout layout) const {
    const ConvolutionTurn turn(DataType::s8);
    auto [primitive, pd] =
        make_implementation<dnnl::convolution_forward>(implementation, [&] { return describe(Use::run); });
    const auto slot = static_cast<size_t>(conv_.x.input);
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, slot, desc_in(layout, conv_.x_dims, x_type_), pd.src_desc()},
                                    int8_weights(conv_, row_major(weight_dims(conv_), DataType::s8), pd.weights_desc()),
                                    {DNNL_ARG_DST, true, 0, desc_in(layout, conv_.y_dims, y_type_), pd.dst_desc()}};
    if (bias_.is_present()) {
      const dnnl::memory::desc desc = row_major(bias_.dims());
      arguments.push_back({DNNL_ARG_BIAS, false, kNoInput, desc, desc, bias_});
    }
    auto kernel = std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), pd.scratchpad_desc());
    if (conv_.residual) kernel->set_accumulated_input(static_cast<size_t>(conv_.residual->input));
    return kernel;
  }

 private:
  dnnl::convolution_forward::desc make_desc() const {
    return {dnnl::prop_kind::forward_inference,
            dnnl::algorithm::convolution_direct,
            desc_in(Layout::channels_last, conv_.x_dims, x_type_),
            any_layout(weight_dims(conv_), DataType::s8),
            bias_.is_present() ? row_major(bias_.dims()) : dnnl::memory::desc(),
            desc_in(Layout::channels_last, conv_.y_dims, y_type_),
            windows_.strides,
            windows_.dilates,
            windows_.pads_begin,
            windows_.pads_end};
  }

  const QuantizedCall& conv_;
  DataType x_type_, y_type_;
  Tensor bias_;
  ConvWindows windows_;
  dnnl::convolution_forward::desc desc_;
};

std::vector<Layout> input_layouts(const KernelCall& call, const QuantizedCall& conv, Layout layout) {
  std::vector<Layout> layouts(call.inputs.size(), Layout::row_major);
  layouts[static_cast<size_t>(conv.x.input)] = layout;
  if (conv.residual) layouts[static_cast<size_t>(conv.residual->input)] = layout;
  return layouts;
}

double cost_us(const KernelCall& call, const QuantizedCall& conv, std::string_view implementation, Layout layout) {
  constexpr double kFlopsPerUsAndThread = 90e3;
  constexpr double kBytesPerUs = 10e3;
  double flops = 2;
  for (const int64_t extent : conv.y_dims) flops *= static_cast<double>(extent);
  for (size_t a = 1; a < conv.w_dims.size(); ++a) flops *= static_cast<double>(conv.w_dims[a]);
  double bytes = static_cast<double>(size_of(call.outputs[0]));
  for (const Type& type : call.inputs) bytes += type.is_tensor() ? static_cast<double>(size_of(type)) : 0;
  if (layout == Layout::row_major) bytes *= 3;
  return 3 + flops / (kFlopsPerUsAndThread * call.threads * int8_speedup(implementation)) + bytes / kBytesPerUs;
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  std::string ignored;
  const auto conv = read_int8(call, ignored);
  std::vector<KernelVariant> result;
  try {
    const Convolution convolution(*conv);
    const ConvolutionTurn turn(DataType::s8);
    Descriptor candidate = convolution.describe(Use::list);
    std::set<std::string> taken;
    do {
      const std::string name = candidate.impl_info_str();
      if (!convolution.is_usable(name) || !taken.insert(name).second) continue;
      // What oneDNN names first is most often the fastest.
      const double later = 1 + 0.05 * static_cast<double>(taken.size() - 1);
      for (const Layout layout : {Layout::row_major, Layout::channels_last}) {
        const double us = cost_us(call, *conv, name, layout) * later;
        result.push_back(
            {.name = name, .inputs = input_layouts(call, *conv, layout), .outputs = {layout}, .cost_us = us});
      }
    } while (taken.size() < kMaxImplementations && candidate.next_impl());
  } catch (const dnnl::error&) {
    // oneDNN has nothing for it.
  }
  return result;
}

Prepared prepare(const KernelCall& call) {
  std::string reason;
  const auto conv = read_int8(call, reason);
  if (!conv) return {nullptr, reason};
  if (conv->must_shift_weights() && !conv->weights.is_present()) return {nullptr, "weights that are not known"};
  return try_prepare([&] { return Convolution(*conv).make(call.variant->name, call.variant->output(0)); });
}

}  // namespace

std::vector<KernelDef> int8_conv_kernels() {
  std::vector<KernelDef> kernels;
  for (const std::string_view op : {fused_def().name, qlinear_conv_def().name, conv_integer_def().name}) {
    kernels.push_back(
        {.name = "cpu.int8_conv_onednn", .op = op, .why_not = why_not, .prepare = prepare, .variants = variants});
  }
  return kernels;
}

}  // namespace autograph::onednn

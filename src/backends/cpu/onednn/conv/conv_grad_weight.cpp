// conv_grad_weight with one to three spatial dims, groups and dilation: oneDNN's backward convolution by weights.
//
// As for conv, all implementations are offered in all layouts of x and gy; the gradient itself is written row-major,
// behind a reorder where the primitive gives it in blocks.
#include <algorithm>
#include <string>

#include "autograph/op_def.h"
#include "backends/cpu/onednn/conv/backward_convolution.h"
#include "backends/cpu/onednn/conv/backward_cost.h"
#include "backends/cpu/onednn/conv/conv_windows.h"
#include "backends/cpu/onednn/implementation_lists.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"
#include "ops/window/conv_gradients.h"

namespace autograph::onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kGy = 1;
// Images, which may be read row-major where all else is in blocks.
constexpr int64_t kMaxPlainChannels = 4;

using Descriptor = dnnl::convolution_backward_weights::primitive_desc;

// Layouts of x and gy; its number is the tag of a variant.
struct Form {
  Layout x = Layout::row_major;
  Layout gy = Layout::row_major;
};

std::vector<Form> forms(const KernelCall& call) {
  const Layout blocked = native_block();
  std::vector<Form> list{
      {Layout::row_major, Layout::row_major}, {blocked, blocked}, {Layout::channels_last, Layout::channels_last}};
  if (call.input_dims(kX)[1] <= kMaxPlainChannels) list.push_back({Layout::row_major, blocked});
  return list;
}

// A call in one form.
class WeightGradient {
 public:
  WeightGradient(const KernelCall& call, const Form& form)
      : form_(form),
        x_(call.input_dims(kX)),
        gy_(call.input_dims(kGy)),
        w_(grouped_weights(call.output_dims(0), call.attributes.integer("group"))) {
    for (const WindowAxis& axis : conv_grad_weight_windows(call.attributes, x_, gy_)) {
      windows_.add(axis, axis.pad_end);
    }
  }

  // What a descriptor is made from, which must live while that steps through implementations.
  struct Source {
    dnnl::convolution_backward_weights::desc desc;
    dnnl::convolution_forward::primitive_desc forward;
  };

  // Throws dnnl::error where oneDNN has nothing for the form.
  Source make_source() const {
    const dnnl::memory::desc x = desc_in(form_.x, x_), gy = desc_in(form_.gy, gy_), w = any_layout(w_);
    const auto& [strides, dilates, pads_begin, pads_end] = windows_;
    return {{dnnl::algorithm::convolution_direct, x, w, gy, strides, dilates, pads_begin, pads_end},
            {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, x, w, gy, strides, dilates,
              pads_begin, pads_end},
             cpu_engine()}};
  }

  static Descriptor describe(const Source& source, Use use) {
    return {source.desc, new_attributes(use), cpu_engine(), source.forward};
  }

  bool is_usable(std::string_view implementation) const {
    if (implementation.find("ref") != std::string_view::npos) return false;
    // oneDNN 2.6 leaves pixels out where it gathers those of a stride from channels that are no whole vectors.
    const bool skips =
        std::any_of(windows_.strides.begin(), windows_.strides.end(), [](int64_t stride) { return stride > 1; });
    const bool is_odd = form_.x == Layout::channels_last && (x_[1] % 8 != 0 || gy_[1] % 8 != 0);
    return !(skips && is_odd && implementation.starts_with("jit_1x1"));
  }

  ProblemKind kind(int threads) const {
    constexpr int64_t kOfWeights = -1;  // told from forward convolutions, whose kinds begin with their threads
    ProblemKind kind;
    kind.add(kOfWeights).add(threads).add(static_cast<int64_t>(form_.x)).add(static_cast<int64_t>(form_.gy));
    kind.add(w_).add(x_[1]).add_magnitudes(x_).add_magnitudes(gy_);
    windows_.add_to(kind);
    return kind;
  }

  const dnnl::memory::dims& weight_dims() const { return w_; }

 private:
  Form form_;
  dnnl::memory::dims x_, gy_, w_;
  WindowLists windows_;
};

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  if (std::string reason = why_not_f32(call); !reason.empty()) return reason;
  for (const WindowAxis& axis : conv_grad_weight_windows(call.attributes, call.input_dims(kX), call.input_dims(kGy))) {
    if (axis.pad_end + axis.stride <= 0) return "fewer windows than fit into x";
  }
  return "";
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  const std::vector<Form> list = forms(call);
  const OpCost cost = cost_of(call.op, {call.attributes, call.inputs, call.outputs});
  std::vector<KernelVariant> result;
  for (size_t number = 0; number < list.size(); ++number) {
    const Form& form = list[number];
    const WeightGradient gradient(call, form);
    for (const std::string& name :
         implementations_for(gradient.kind(call.threads), [&] { return list_implementations(gradient); })) {
      if (!gradient.is_usable(name)) continue;
      result.push_back({.name = name,
                        .inputs = {form.x, form.gy},
                        .outputs = {Layout::row_major},
                        .cost_us = backward_cost_us(cost, name, form.gy, call.threads),
                        .tag = static_cast<int>(number)});
    }
  }
  return result;
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const Form form = forms(call)[static_cast<size_t>(call.variant->tag)];
    const WeightGradient gradient(call, form);
    const ConvolutionTurn turn(DataType::f32);
    const auto source = gradient.make_source();
    auto [primitive, pd] = make_implementation<dnnl::convolution_backward_weights>(
        call.variant->name, [&] { return gradient.describe(source, Use::run); });
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, false, kX, desc_in(form.x, call.input_dims(kX)), pd.src_desc()},
        {DNNL_ARG_DIFF_DST, false, kGy, desc_in(form.gy, call.input_dims(kGy)), pd.diff_dst_desc()},
        {DNNL_ARG_DIFF_WEIGHTS, true, 0, row_major(gradient.weight_dims()), pd.diff_weights_desc()},
    };
    return std::make_unique<PrimitiveKernel>(std::move(primitive), std::move(arguments), pd.scratchpad_desc());
  });
}

}  // namespace

KernelDef conv_grad_weight_kernel() {
  return {.name = "cpu.conv_grad_weight_onednn",
          .op = conv_grad_weight_def().name,
          .why_not = why_not,
          .prepare = prepare,
          .variants = variants};
}

}  // namespace autograph::onednn

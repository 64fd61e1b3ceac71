// max_pool, average_pool and global_max_pool in f32, in every layout; the maximum of bytes, for which oneDNN has
// channels-last kernels.
//
// oneDNN's maximum starts from the lowest finite number and does not propagate NaN, so inputs that hold NaN or infinity
// are left to the reference; and so are means that became infinite, as they do where a sum is beyond f32. A window that
// lies in the padding alone, and a divisor that counts padding where a window overhangs the padded input, are refused.
#include <cfenv>

#include "backends/cpu/all_finite.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "graph/run_reference.h"
#include "ops/defs.h"
#include "ops/window/pool_loops.h"
#include "tensor/size_of.h"

namespace autograph {
namespace onednn {
namespace {

// A primitive for maxima of finite inputs and means that stay finite, the reference for the others, which takes
// row-major tensors alone: other layouts are brought there and back.
class CheckedPool : public Kernel {
 public:
  CheckedPool(const KernelCall& call, std::unique_ptr<Kernel> inner)
      : op_(call.op),
        is_max_(&call.op == &max_pool_def() || &call.op == &global_max_pool_def()),
        attributes_(call.attributes),
        threads_(call.threads),
        layout_(call.variant->input(0)),
        x_(call.input_dims(0)),
        y_(call.output_dims(0)),
        inner_(std::move(inner)) {
    for (const int64_t extent : padded_dims(layout_, is_max_ ? x_ : y_)) num_checked_ *= extent;
  }
  void run(const KernelArgs& args) const override {
    if (is_max_ && !all_finite(args.inputs[0].data<float>(), num_checked_, threads_)) return run_reference(args);
    // Of one thread the processor tells; a team's are other processors.
    if (threads_ == 1) std::feclearexcept(FE_OVERFLOW);
    inner_->run(args);
    if (is_max_ || (threads_ == 1 && std::fetestexcept(FE_OVERFLOW) == 0)) return;
    if (!all_finite(args.outputs[0].data<float>(), num_checked_, threads_)) run_reference(args);
  }
  size_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  std::unique_ptr<KernelState> new_state() const override { return inner_->new_state(); }

 private:
  // Rare, so it may allocate.
  void run_reference(const KernelArgs& args) const {
    if (layout_ == Layout::row_major) return call_reference(op_, {attributes_, args.inputs, args.outputs});
    Tensor x = Tensor::empty(DType::f32, x_);
    Tensor y = Tensor::empty(DType::f32, y_);
    reorder(args.inputs[0].raw(), desc_in(layout_, x_), x.mutable_raw(), row_major(x_));
    const TensorView input = x.view();
    const TensorView output = y.view();
    call_reference(op_, {attributes_, {&input, 1}, {&output, 1}});
    reorder(y.raw(), row_major(y_), const_cast<void*>(args.outputs[0].raw()), desc_in(layout_, y_));
  }

  const OpDef& op_;
  const bool is_max_;
  const Attributes& attributes_;
  const int threads_;
  const Layout layout_;
  const Dims x_;
  const Dims y_;
  std::unique_ptr<Kernel> inner_;
  int64_t num_checked_ = 1;  // elements of the input or output, padding included
};

std::vector<WindowAxis> windows_of(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  return pool_windows(call.attributes, TensorView(DType::f32, x, nullptr));
}

// Padding at the end with which the last window just fits.
int64_t needed_pad_end(const WindowAxis& axis) {
  const int64_t span = (axis.kernel - 1) * axis.dilation + 1;
  return (axis.out - 1) * axis.stride + span - axis.in - axis.pad_begin;
}

std::string why_not_spatial(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return call.inputs[0].shape().num_elements() == 0 ? "a tensor without elements" : "";
}

std::string why_not_rank(const KernelCall& call) {
  std::string reason = why_not_spatial(call);
  return reason.empty() ? why_not_f32(call) : reason;
}

bool is_of_bytes(const KernelCall& call) {
  return call.inputs[0].dtype() == DType::u8 || call.inputs[0].dtype() == DType::i8;
}

std::string why_not_window(const KernelCall& call) {
  if (call.outputs.size() > 1) return "indices are wanted";
  const bool max_of_bytes = &call.op == &max_pool_def() && is_of_bytes(call);
  std::string reason = max_of_bytes ? why_not_spatial(call) : why_not_rank(call);
  if (!reason.empty()) return reason;
  for (const WindowAxis& axis : windows_of(call)) {
    const int64_t end = std::max(needed_pad_end(axis), axis.pad_end);
    const bool dilated_in_padding = axis.dilation > 1 && axis.pad_begin + end > 0;
    if (dilated_in_padding || axis.pad_begin >= axis.kernel || end >= axis.kernel) {
      return "a window that may lie in the padding alone";
    }
    if (needed_pad_end(axis) > axis.pad_end && call.attributes.flag("count_include_pad")) {
      return "a divisor that counts padding while windows overhang";
    }
  }
  return "";
}

std::unique_ptr<Kernel> make(const KernelCall& call, const std::vector<WindowAxis>& axes, dnnl::algorithm algorithm) {
  const Dims x = call.input_dims(0);
  const Dims y = call.output_dims(0);
  const DataType type = data_type_of(call.inputs[0].dtype());
  const dnnl::memory::desc given_src = desc_in(call.variant->input(0), x, type);
  const dnnl::memory::desc given_dst = desc_in(call.variant->output(0), y, type);
  const dnnl::memory::desc src = is_of_bytes(call) ? desc_in(Layout::channels_last, x, type) : given_src;
  const dnnl::memory::desc dst = is_of_bytes(call) ? desc_in(Layout::channels_last, y, type) : given_dst;
  dnnl::memory::dims strides, kernel, dilation, pads_begin, pads_end;
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    kernel.push_back(axis.kernel);
    // One tap has no distance to a next one; oneDNN refuses some that are given one.
    dilation.push_back(axis.kernel == 1 ? 0 : axis.dilation - 1);
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(std::max(needed_pad_end(axis), axis.pad_end));
  }
  const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, src, dst, strides, kernel,
                                            dilation, pads_begin, pads_end);
  const dnnl::pooling_v2_forward::primitive_desc pd(desc, new_attributes(), cpu_engine());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, given_src, src}, {DNNL_ARG_DST, true, 0, given_dst, dst}};
  return std::make_unique<PrimitiveKernel>(dnnl::pooling_v2_forward(pd), std::move(arguments), pd.scratchpad_desc());
}

std::unique_ptr<Kernel> make_checked(const KernelCall& call, const std::vector<WindowAxis>& axes,
                                     dnnl::algorithm algorithm) {
  return std::make_unique<CheckedPool>(call, make(call, axes, algorithm));
}

Prepared prepare_max(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    if (is_of_bytes(call)) return make(call, windows_of(call), dnnl::algorithm::pooling_max);
    return make_checked(call, windows_of(call), dnnl::algorithm::pooling_max);
  });
}

Prepared prepare_average(const KernelCall& call) {
  const auto algorithm = call.attributes.flag("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                                                   : dnnl::algorithm::pooling_avg_exclude_padding;
  return try_prepare([&] { return make_checked(call, windows_of(call), algorithm); });
}

// One window over the whole plane.
std::vector<WindowAxis> whole_plane(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  std::vector<WindowAxis> axes;
  for (size_t a = 2; a < x.size(); ++a) axes.push_back({.in = x[a], .out = 1, .kernel = x[a]});
  return axes;
}

Prepared prepare_global_max(const KernelCall& call) {
  return try_prepare([&] { return make_checked(call, whole_plane(call), dnnl::algorithm::pooling_max); });
}

bool has_windows(const KernelCall& call) { return &call.op == &average_pool_def() || &call.op == &max_pool_def(); }

double num_outputs(const KernelCall& call) {
  return static_cast<double>(call.outputs[0].shape().num_elements().value_or(0));
}

double num_taps(const KernelCall& call) {
  double taps = num_outputs(call);
  for (const WindowAxis& axis : windows_of(call)) taps *= static_cast<double>(axis.kernel);
  return taps;
}

constexpr double kTapUs = 15e-6;

// With AVX2 alone oneDNN's vectors take as long for each output as for some hundred taps, and row-major planes have its
// plain loops (bench_kernels pool).
double avx2_us(const KernelCall& call, Layout layout) {
  constexpr double kPlainTapUs = 2.6e-3, kPlainMaximumUs = 40e-3;
  constexpr double kMaximumUs = 3.6e-3, kMeanUs = 1.6e-3, kBlockedMeanUs = 2.2e-3;
  const double outputs = num_outputs(call), taps = num_taps(call);
  const bool is_mean = &call.op == &average_pool_def();
  if (layout == Layout::row_major) return taps * kPlainTapUs + (is_mean ? 0 : outputs * kPlainMaximumUs);
  const double output_us = !is_mean ? kMaximumUs : channel_block(layout) > 1 ? kBlockedMeanUs : kMeanUs;
  return taps * kTapUs + outputs * output_us;
}

// Every layout, at the speed of reading the input and a little for each tap; row-major planes take oneDNN's plain
// loops, means in blocks others than channels-last ones, and inputs of maxima are looked through first (bench_kernels
// pool).
std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kStartUs = 2;
  constexpr double kBytesPerUs = 8e3;
  constexpr double kBlockedMeanPenalty = 2.8;
  constexpr double kLookThroughPenalty = 1.8;
  const bool is_mean = &call.op == &average_pool_def();
  const bool is_of_avx2 = native_block() == Layout::blocked8 && has_windows(call) && !is_of_bytes(call);
  const bool is_looked_through = !is_of_bytes(call) && &call.op == &max_pool_def();
  const double row_major_penalty = is_mean ? 5 : is_looked_through ? 1.3 : 3;
  std::vector<KernelVariant> result;
  const double us = static_cast<double>(size_of(call.inputs[0])) / kBytesPerUs;
  const double taps_us = has_windows(call) ? num_taps(call) * kTapUs : 0;
  for (const Layout layout : {Layout::row_major, native_block(), Layout::channels_last}) {
    if (is_of_bytes(call) && channel_block(layout) > 1) continue;
    double factor = layout == Layout::row_major ? row_major_penalty : 1;
    if (is_mean && channel_block(layout) > 1) factor *= kBlockedMeanPenalty;
    if (is_looked_through) factor *= kLookThroughPenalty;
    const double run_us = is_of_avx2 ? avx2_us(call, layout) : us * factor + taps_us;
    result.push_back(
        {.name = "", .inputs = {layout}, .outputs = {layout}, .cost_us = kStartUs + run_us / call.threads});
  }
  return result;
}

}  // namespace

std::vector<KernelDef> pool_kernels() {
  return {
      {"cpu.max_pool_onednn", max_pool_def().name, why_not_window, prepare_max, variants},
      {"cpu.average_pool_onednn", average_pool_def().name, why_not_window, prepare_average, variants},
      {"cpu.global_max_pool_onednn", global_max_pool_def().name, why_not_rank, prepare_global_max, variants},
  };
}

}  // namespace onednn
}  // namespace autograph

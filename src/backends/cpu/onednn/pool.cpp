// max_pool, average_pool and global_max_pool in f32.
//
// oneDNN's maximum starts from the lowest finite number and does not propagate NaN, so inputs that hold NaN or infinity
// are left to the reference. A window that lies in the padding alone, and a divisor that counts padding where a window
// overhangs the padded input, are refused.
#include <cfloat>
#include <cmath>

#include "backends/cpu/multiversion.h"
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "graph/run_reference.h"
#include "ops/window/pool_loops.h"

namespace autograph::onednn {
namespace {

AG_MULTIVERSION bool all_finite(const float* x, int64_t count) {
  int bad = 0;
#pragma omp simd reduction(| : bad)
  for (int64_t i = 0; i < count; ++i) bad |= std::fabs(x[i]) <= FLT_MAX ? 0 : 1;
  return bad == 0;
}

// A primitive for finite inputs, the reference for the others.
class MaxPoolKernel : public Kernel {
 public:
  MaxPoolKernel(const KernelCall& call, std::unique_ptr<Kernel> inner)
      : op_(call.op), attributes_(call.attributes), inner_(std::move(inner)) {}
  void run(const KernelArgs& args) const override {
    if (all_finite(args.inputs[0].data<float>(), args.inputs[0].num_elements())) {
      inner_->run(args);
    } else {
      call_reference(op_, {attributes_, args.inputs, args.outputs});
    }
  }
  size_t scratch_bytes() const override { return inner_->scratch_bytes(); }
  std::unique_ptr<KernelState> new_state() const override { return inner_->new_state(); }

 private:
  const OpDef& op_;
  const Attributes& attributes_;
  std::unique_ptr<Kernel> inner_;
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

std::string why_not_rank(const KernelCall& call) {
  const size_t rank = call.input_dims(0).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return why_not_f32(call);
}

std::string why_not_window(const KernelCall& call) {
  if (call.outputs.size() > 1) return "indices are wanted";
  std::string reason = why_not_rank(call);
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
  dnnl::memory::dims strides, kernel, dilation, pads_begin, pads_end;
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    kernel.push_back(axis.kernel);
    dilation.push_back(axis.dilation - 1);
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(std::max(needed_pad_end(axis), axis.pad_end));
  }
  const dnnl::pooling_v2_forward::desc desc(dnnl::prop_kind::forward_inference, algorithm, row_major(x), any_layout(y),
                                            strides, kernel, dilation, pads_begin, pads_end);
  const dnnl::pooling_v2_forward::primitive_desc pd(desc, new_attributes(), cpu_engine());
  std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, row_major(x), pd.src_desc()},
                                  {DNNL_ARG_DST, true, 0, row_major(y), pd.dst_desc()}};
  return std::make_unique<PrimitiveKernel>(dnnl::pooling_v2_forward(pd), std::move(arguments), pd.scratchpad_desc());
}

Prepared prepare_max(const KernelCall& call) {
  return try_prepare([&] {
    return std::make_unique<MaxPoolKernel>(call, make(call, windows_of(call), dnnl::algorithm::pooling_max));
  });
}

Prepared prepare_average(const KernelCall& call) {
  const auto algorithm = call.attributes.flag("count_include_pad") ? dnnl::algorithm::pooling_avg_include_padding
                                                                   : dnnl::algorithm::pooling_avg_exclude_padding;
  return try_prepare([&] { return make(call, windows_of(call), algorithm); });
}

// One window over the whole plane.
Prepared prepare_global_max(const KernelCall& call) {
  const Dims x = call.input_dims(0);
  std::vector<WindowAxis> axes;
  for (size_t a = 2; a < x.size(); ++a) axes.push_back({.in = x[a], .out = 1, .kernel = x[a]});
  return try_prepare(
      [&] { return std::make_unique<MaxPoolKernel>(call, make(call, axes, dnnl::algorithm::pooling_max)); });
}

}  // namespace

std::vector<KernelDef> pool_kernels() {
  return {
      {"cpu.max_pool_onednn", "max_pool", why_not_window, prepare_max},
      {"cpu.average_pool_onednn", "average_pool", why_not_window, prepare_average},
      {"cpu.global_max_pool_onednn", "global_max_pool", why_not_rank, prepare_global_max},
  };
}

}  // namespace autograph::onednn

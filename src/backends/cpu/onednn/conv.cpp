// conv with one to three spatial dims, groups, dilation and bias; the layouts are oneDNN's choice.
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "ops/window/window_geometry.h"

namespace autograph::onednn {
namespace {

constexpr size_t kX = 0;
constexpr size_t kW = 1;
constexpr size_t kB = 2;

std::string why_not(const KernelCall& call) {
  const size_t rank = call.input_dims(kX).size();
  if (rank < 3 || rank > 5) return "1 to 3 spatial dims only";
  return why_not_f32(call);
}

// [M, C / group, kernel...] as [group, M / group, C / group, kernel...], which has the same elements in the same order.
dnnl::memory::dims weight_dims(const KernelCall& call, int64_t group) {
  dnnl::memory::dims dims = call.input_dims(kW);
  if (group == 1) return dims;
  dims[0] /= group;
  dims.insert(dims.begin(), group);
  return dims;
}

std::unique_ptr<Kernel> make(const KernelCall& call) {
  const Dims x = call.input_dims(kX);
  const Dims w = call.input_dims(kW);
  const Dims y = call.output_dims(0);
  const int64_t group = call.attributes.integer("group");
  const auto axes = resolve_windows(window_spec(call.attributes, Dims(w.begin() + 2, w.end())),
                                    std::span<const int64_t>(x).subspan(2));
  dnnl::memory::dims strides, dilates, pads_begin, pads_end;
  for (const WindowAxis& axis : axes) {
    strides.push_back(axis.stride);
    dilates.push_back(axis.dilation - 1);
    pads_begin.push_back(axis.pad_begin);
    pads_end.push_back(axis.pad_end);
  }
  const auto w_dims = weight_dims(call, group);
  const bool has_bias = call.has_input(kB);
  const dnnl::memory::desc bias = has_bias ? row_major({y[1]}) : dnnl::memory::desc();
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             any_layout(x), any_layout(w_dims), bias, any_layout(y), strides, dilates,
                                             pads_begin, pads_end);
  const dnnl::convolution_forward::primitive_desc pd(desc, new_attributes(), cpu_engine());
  const auto constant = [&](size_t slot) { return call.constant(slot) ? *call.constant(slot) : Tensor(); };
  std::vector<Argument> arguments{
      {DNNL_ARG_SRC, false, kX, row_major(x), pd.src_desc()},
      {DNNL_ARG_WEIGHTS, false, kW, row_major(w_dims), pd.weights_desc(), constant(kW)},
      {DNNL_ARG_DST, true, 0, row_major(y), pd.dst_desc()},
  };
  if (has_bias) arguments.push_back({DNNL_ARG_BIAS, false, kB, bias, bias, constant(kB)});
  return std::make_unique<PrimitiveKernel>(dnnl::convolution_forward(pd), std::move(arguments), pd.scratchpad_desc());
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&] { return make(call); });
}

}  // namespace

KernelDef conv_kernel() { return {.name = "cpu.conv_onednn", .op = "conv", .why_not = why_not, .prepare = prepare}; }

}  // namespace autograph::onednn

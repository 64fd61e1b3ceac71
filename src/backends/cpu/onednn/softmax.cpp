// softmax along any axis in f32.
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"

namespace autograph::onednn {
namespace {

std::string why_not(const KernelCall& call) { return why_not_f32(call); }

// The dims before, at and after the axis: oneDNN then always sees three dims.
Prepared prepare(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const Dims x = call.input_dims(0);
    int64_t axis = call.attributes.integer("axis");
    if (axis < 0) axis += static_cast<int64_t>(x.size());
    dnnl::memory::dims dims{1, x[static_cast<size_t>(axis)], 1};
    for (size_t a = 0; a < x.size(); ++a) {
      if (static_cast<int64_t>(a) < axis) dims[0] *= x[a];
      if (static_cast<int64_t>(a) > axis) dims[2] *= x[a];
    }
    if (dims[2] == 1) dims.pop_back();
    const auto layout = row_major(dims);
    const dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference, layout, 1);
    const dnnl::softmax_forward::primitive_desc pd(desc, new_attributes(), cpu_engine());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, layout, pd.src_desc()},
                                    {DNNL_ARG_DST, true, 0, layout, pd.dst_desc()}};
    return std::make_unique<PrimitiveKernel>(dnnl::softmax_forward(pd), std::move(arguments), pd.scratchpad_desc());
  });
}

}  // namespace

KernelDef softmax_kernel() {
  return {.name = "cpu.softmax_onednn", .op = "softmax", .why_not = why_not, .prepare = prepare};
}

}  // namespace autograph::onednn

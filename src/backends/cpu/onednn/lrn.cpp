// lrn over an odd number of channels.
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"
#include "ops/defs.h"
#include "tensor/size_of.h"

namespace autograph::onednn {
namespace {

using Descriptor = dnnl::lrn_forward::primitive_desc;

Descriptor describe(const KernelCall& call, Layout layout) {
  const dnnl::lrn_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::lrn_across_channels,
                                     desc_in(layout, call.input_dims(0)), call.attributes.integer("size"),
                                     call.attributes.real("alpha"), call.attributes.real("beta"),
                                     call.attributes.real("bias"));
  return {desc, new_attributes(), cpu_engine()};
}

std::string why_not(const KernelCall& call) {
  // Of an even number, oneDNN takes one more before than ONNX does.
  if (call.attributes.integer("size") % 2 == 0) return "an even size";
  if (call.input_dims(0).size() != 4) return "2 spatial dims only";
  return why_not_f32(call);
}

Prepared prepare(const KernelCall& call) {
  return try_prepare([&] {
    const Descriptor pd = describe(call, call.variant->input(0));
    const dnnl::memory::desc given = desc_in(call.variant->input(0), call.input_dims(0));
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, given, pd.src_desc()},
                                    {DNNL_ARG_DST, true, 0, given, pd.dst_desc()}};
    return std::make_unique<PrimitiveKernel>(dnnl::lrn_forward(pd), std::move(arguments), pd.scratchpad_desc());
  });
}

std::vector<KernelVariant> variants(const KernelCall& call) {
  constexpr double kBytesPerUsAndThread = 4e3;
  constexpr double kLoopsPenalty = 10;  // of oneDNN's plain loops
  std::vector<KernelVariant> result;
  for (const Layout layout : {Layout::row_major, native_block(), Layout::channels_last}) {
    try {
      const std::string name = describe(call, layout).impl_info_str();
      const double penalty = name.find("jit") == std::string::npos ? kLoopsPenalty : 1;
      const double us = static_cast<double>(size_of(call.inputs[0])) / kBytesPerUsAndThread / call.threads * penalty;
      result.push_back({.name = name, .inputs = {layout}, .outputs = {layout}, .cost_us = us});
    } catch (const dnnl::error&) {
      // oneDNN has nothing for this layout.
    }
  }
  return result;
}

}  // namespace

KernelDef lrn_kernel() {
  return {.name = "cpu.lrn_onednn", .op = lrn_def().name, .why_not = why_not, .prepare = prepare, .variants = variants};
}

}  // namespace autograph::onednn

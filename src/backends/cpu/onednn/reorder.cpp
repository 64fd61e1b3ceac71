// Changes of layout. Those between row_major and channels_last are ours: oneDNN takes up to four times as long where it
// walks from element to element.
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/simd/kernels.h"
#include "base/check.h"

namespace autograph::onednn {

std::unique_ptr<Kernel> prepare_reorder(const ReorderCall& call) {
  if (auto kernel = simd::reorder_by_transpose(call)) return kernel;
  const Dims dims = call.type.shape().static_dims();
  const DataType type = data_type_of(call.type.dtype());
  AG_CHECK(type != DataType::undef, "no layouts for {}", to_string(call.type));
  const dnnl::memory::desc from = desc_in(call.from, dims, type);
  const dnnl::memory::desc to = desc_in(call.to, dims, type);
  const dnnl::reorder::primitive_desc pd(cpu_engine(), from, cpu_engine(), to, new_attributes());
  std::vector<Argument> arguments{{DNNL_ARG_FROM, false, 0, from, from}, {DNNL_ARG_TO, true, 0, to, to}};
  return std::make_unique<PrimitiveKernel>(dnnl::reorder(pd), std::move(arguments), pd.scratchpad_desc());
}

}  // namespace autograph::onednn

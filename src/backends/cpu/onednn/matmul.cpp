// matmul and gemm in f32.
//
// A stack of matrices times one matrix is one tall product. Other stacks go to oneDNN's batched product, which
// broadcasts extents of 1. gemm adds alpha as an output scale and c as a sum after the product.
#include "backends/cpu/onednn/onednn_ops.h"
#include "backends/cpu/onednn/primitive_kernel.h"
#include "backends/cpu/refusal.h"

namespace autograph::onednn {
namespace {

using MemoryDims = dnnl::memory::dims;

// What the product sees: all three of one rank.
struct ProductDims {
  MemoryDims a, b, y;
};

ProductDims product_dims(const KernelCall& call) {
  ProductDims dims{call.input_dims(0), call.input_dims(1), {}};
  if (dims.a.size() == 1) dims.a.insert(dims.a.begin(), 1);
  if (dims.b.size() == 1) dims.b.push_back(1);
  if (dims.b.size() == 2) {
    const int64_t k = dims.a.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < dims.a.size(); ++i) rows *= dims.a[i];
    return {{rows, k}, dims.b, {rows, dims.b[1]}};
  }
  const size_t rank = std::max(dims.a.size(), dims.b.size());
  dims.a.insert(dims.a.begin(), rank - dims.a.size(), 1);
  dims.b.insert(dims.b.begin(), rank - dims.b.size(), 1);
  for (size_t i = 0; i + 2 < rank; ++i) dims.y.push_back(std::max(dims.a[i], dims.b[i]));
  dims.y.push_back(dims.a[rank - 2]);
  dims.y.push_back(dims.b[rank - 1]);
  return dims;
}

Tensor constant_of(const KernelCall& call, size_t slot) {
  return call.constant(slot) ? *call.constant(slot) : Tensor();
}

std::string why_not_matmul(const KernelCall& call) {
  if (std::max(call.input_dims(0).size(), call.input_dims(1).size()) > DNNL_MAX_NDIMS) return "more than 12 dims";
  return why_not_f32(call);
}

Prepared prepare_matmul(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const ProductDims dims = product_dims(call);
    // Only a matrix of constants is worth another layout.
    const bool pack = call.constant(1) && dims.b.size() == 2;
    const dnnl::matmul::desc desc(row_major(dims.a), pack ? any_layout(dims.b) : row_major(dims.b), row_major(dims.y));
    const dnnl::matmul::primitive_desc pd(desc, new_attributes(), cpu_engine());
    std::vector<Argument> arguments{
        {DNNL_ARG_SRC, false, 0, row_major(dims.a), pd.src_desc()},
        {DNNL_ARG_WEIGHTS, false, 1, row_major(dims.b), pd.weights_desc(), pack ? constant_of(call, 1) : Tensor()},
        {DNNL_ARG_DST, true, 0, row_major(dims.y), pd.dst_desc()}};
    return std::make_unique<PrimitiveKernel>(dnnl::matmul(pd), std::move(arguments), pd.scratchpad_desc());
  });
}

// A matrix as given, read as its transpose when `transposed`.
dnnl::memory::desc matrix(const Dims& given, bool transposed) {
  if (!transposed) return row_major(given);
  return {{given[1], given[0]}, dnnl::memory::data_type::f32, MemoryDims{1, given[1]}};
}

std::string why_not_gemm(const KernelCall& call) {
  if (call.has_input(2) && call.attributes.real("beta") != 1.0f) return "beta other than 1";
  return why_not_f32(call);
}

Prepared prepare_gemm(const KernelCall& call) {
  return try_prepare([&]() -> std::unique_ptr<Kernel> {
    const auto a = matrix(call.input_dims(0), call.attributes.flag("transA"));
    const auto b = matrix(call.input_dims(1), call.attributes.flag("transB"));
    const auto y = row_major(call.output_dims(0));
    dnnl::primitive_attr attributes = new_attributes();
    const float alpha = call.attributes.real("alpha");
    if (alpha != 1.0f) attributes.set_output_scales(0, {alpha});
    MemoryDims c_dims;
    if (call.has_input(2)) {
      c_dims = call.input_dims(2);
      c_dims.insert(c_dims.begin(), 2 - c_dims.size(), 1);
      dnnl::post_ops sum;
      sum.append_binary(dnnl::algorithm::binary_add, row_major(c_dims));
      attributes.set_post_ops(sum);
    }
    const bool pack = call.constant(1) != nullptr;
    const dnnl::matmul::desc desc(a, pack ? any_layout(b.dims()) : b, y);
    const dnnl::matmul::primitive_desc pd(desc, attributes, cpu_engine());
    std::vector<Argument> arguments{{DNNL_ARG_SRC, false, 0, a, pd.src_desc()},
                                    {DNNL_ARG_WEIGHTS, false, 1, b, pd.weights_desc(), constant_of(call, 1)},
                                    {DNNL_ARG_DST, true, 0, y, pd.dst_desc()}};
    if (!c_dims.empty()) {
      arguments.push_back({DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, false, 2, row_major(c_dims),
                           row_major(c_dims), constant_of(call, 2)});
    }
    return std::make_unique<PrimitiveKernel>(dnnl::matmul(pd), std::move(arguments), pd.scratchpad_desc());
  });
}

}  // namespace

KernelDef matmul_kernel() {
  return {.name = "cpu.matmul_onednn", .op = "matmul", .why_not = why_not_matmul, .prepare = prepare_matmul};
}

KernelDef gemm_kernel() {
  return {.name = "cpu.gemm_onednn", .op = "gemm", .why_not = why_not_gemm, .prepare = prepare_gemm};
}

}  // namespace autograph::onednn

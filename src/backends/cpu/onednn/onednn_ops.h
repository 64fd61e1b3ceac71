// The ops that oneDNN serves, one function per source file of this folder.
#pragma once

#include "autograph/kernel.h"

namespace autograph::onednn {

KernelDef conv_kernel();
KernelDef fused_conv_kernel();
KernelDef matmul_kernel();
KernelDef fused_matmul_kernel();
KernelDef gemm_kernel();
std::vector<KernelDef> pool_kernels();
std::vector<KernelDef> bf16_conv_kernels();
std::vector<KernelDef> bf16_matmul_kernels();
std::vector<KernelDef> int8_conv_kernels();
std::vector<KernelDef> int8_matmul_kernels();
KernelDef conv_integer_kernel();
KernelDef matmul_integer_kernel();
KernelDef conv_grad_weight_kernel();
KernelDef conv_transpose_kernel();
KernelDef conv_transpose_product_kernel();

/// A change of layout.
std::unique_ptr<Kernel> prepare_reorder(const ReorderCall& call);

}  // namespace autograph::onednn

// The ops that oneDNN serves, one function per source file of this folder.
#pragma once

#include "runtime/kernel_catalog.h"

namespace autograph::onednn {

KernelDef conv_kernel();
KernelDef fused_conv_kernel();
KernelDef matmul_kernel();
KernelDef fused_matmul_kernel();
KernelDef gemm_kernel();
std::vector<KernelDef> pool_kernels();

/// A change of layout.
std::unique_ptr<Kernel> prepare_reorder(const ReorderCall& call);

}  // namespace autograph::onednn

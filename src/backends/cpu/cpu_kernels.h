// The kernels of the CPU backend, best first for each op. Whatever they refuse falls back to the reference.
#pragma once

#include <vector>

#include "autograph/kernel.h"
#include "base/function_ref.h"

namespace autograph {

/// All of them, for the catalog.
std::vector<KernelDef> cpu_kernels();

/// The same, and before them those that round the operands of convolutions and matrix products to bf16.
std::vector<KernelDef> cpu_kernels_with_bf16();

/// "" when this CPU multiplies bf16, else what is missing.
std::string why_no_bf16();

/// Does this CPU add products of bytes in 32 bits? false without oneDNN.
bool has_vnni();

/// How the backend changes layouts; null without oneDNN, whose layouts they are.
PrepareReorder cpu_reorder();

/// Makes the calling thread use `threads` OpenMP threads; returns what it used before. 1 without oneDNN.
int set_cpu_threads(int threads);

/// See Device::run_streams.
bool run_cpu_streams(int streams, int threads, FunctionRef<void(int)> work);

/// Makes oneDNN forget the primitives that it keeps: it looks them up by what they compute, not by implementation.
void forget_cpu_kernels();

/// "Intel(R) Xeon(R) ...; oneDNN 2.6.3; kernels 1": what measured times depend on.
std::string cpu_identity();

// One function per source file of this folder.
KernelDef elementwise_kernel();
KernelDef batch_normalization_kernel();
KernelDef layer_norm_grad_kernel();
KernelDef concat_kernel();
KernelDef split_kernel();
KernelDef gather_kernel();
KernelDef cumulative_sum_kernel();
KernelDef philox_kernel();
KernelDef lp_normalization_kernel();
KernelDef byte_table_kernel();
KernelDef half_cast_kernel();
KernelDef resize_kernel();
KernelDef trilu_kernel();
KernelDef gather_elements_kernel();
KernelDef gather_nd_kernel();
KernelDef scatter_elements_kernel();
KernelDef scatter_nd_kernel();
KernelDef tensor_scatter_kernel();
KernelDef grid_sample_kernel();
KernelDef roi_align_kernel();
KernelDef tree_ensemble_kernel();
std::vector<KernelDef> batch_norm_training_kernels();
std::vector<KernelDef> box_copy_kernels();
std::vector<KernelDef> repeating_copy_kernels();
std::vector<KernelDef> depth_space_kernels();
std::vector<KernelDef> global_pool_kernels();
std::vector<KernelDef> pixel_normalization_kernels();
std::vector<KernelDef> onednn_kernels();
std::vector<KernelDef> simd_kernels();

}  // namespace autograph

// The SIMD kernels of the CPU backend, one function per source file of this folder.
//
// All of them are compiled for several instruction sets; the best one that the CPU has is picked when they run. They
// use up to KernelCall::threads threads where the work is worth it (parallel.h).
#pragma once

#include <memory>
#include <vector>

#include "autograph/kernel.h"

namespace autograph::simd {

/// Changes between row_major and channels_last; null for other layouts.
std::unique_ptr<Kernel> reorder_by_transpose(const ReorderCall& call);

std::vector<KernelDef> grouped_conv_kernels();
std::vector<KernelDef> pointwise_conv_kernels();
std::vector<KernelDef> tap_conv_kernels();
std::vector<KernelDef> winograd_conv_kernels();
std::vector<KernelDef> pixel_pool_kernels();
std::vector<KernelDef> plane_pool_kernels();
KernelDef max_pool_grad_kernel();
KernelDef lstm_gates_grad_kernel();
std::vector<KernelDef> recurrent_grad_kernels();
std::vector<KernelDef> recurrent_kernels();
KernelDef dynamic_quantize_lstm_kernel();
KernelDef block_matmul_kernel();
KernelDef integer_matmul_kernel();
KernelDef integer_conv_kernel();
std::vector<KernelDef> quantized_product_kernels();
std::vector<KernelDef> packed_gemm_kernels();
std::vector<KernelDef> weight_product_kernels();
std::vector<KernelDef> gather_matmul_kernels();
std::vector<KernelDef> class_loss_kernels();
KernelDef elementwise_kernel();
KernelDef fused_elementwise_kernel();
KernelDef fused_reduction_kernel();
KernelDef quantized_pair_kernel();
KernelDef channel_gate_kernel();
KernelDef chosen_experts_kernel();
KernelDef softmax_kernel();
KernelDef log_softmax_kernel();
KernelDef lrn_kernel();
KernelDef layer_normalization_kernel();
KernelDef rms_normalization_kernel();
KernelDef attention_kernel();
KernelDef tiled_attention_kernel();
KernelDef tiled_attention_grad_kernel();
KernelDef transpose_kernel();
KernelDef top_k_kernel();
std::vector<KernelDef> arg_extreme_kernels();
std::vector<KernelDef> reduction_kernels();
std::vector<KernelDef> plane_conv_kernels();
KernelDef plane_depthwise_kernel();
std::vector<KernelDef> plane_normalization_kernels();

}  // namespace autograph::simd

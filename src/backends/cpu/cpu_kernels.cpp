#include "backends/cpu/cpu_kernels.h"

#include "backends/cpu/quantize/dynamic_quantize.h"
#include "backends/cpu/simd/kernels.h"

#ifdef AG_HAS_ONEDNN
#include "backends/cpu/onednn/onednn_ops.h"
#endif

namespace autograph {

#ifdef AG_HAS_ONEDNN
std::vector<KernelDef> onednn_kernels() {
  std::vector<KernelDef> kernels{onednn::conv_kernel(),
                                 onednn::fused_conv_kernel(),
                                 onednn::fused_matmul_kernel(),
                                 onednn::matmul_kernel(),
                                 onednn::gemm_kernel(),
                                 onednn::matmul_integer_kernel(),
                                 onednn::conv_integer_kernel(),
                                 onednn::conv_transpose_kernel(),
                                 onednn::conv_transpose_product_kernel(),
                                 onednn::conv_grad_weight_kernel()};
  for (const auto& more : {onednn::pool_kernels(), onednn::int8_conv_kernels(), onednn::int8_matmul_kernels()}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  return kernels;
}

std::vector<KernelDef> bf16_kernels() {
  std::vector<KernelDef> kernels = onednn::bf16_conv_kernels();
  for (const KernelDef& product : onednn::bf16_matmul_kernels()) kernels.push_back(product);
  return kernels;
}

PrepareReorder cpu_reorder() { return onednn::prepare_reorder; }
#else
std::vector<KernelDef> bf16_kernels() { return {}; }

bool has_vnni() { return false; }

std::string why_no_bf16() { return "a build without oneDNN"; }

std::vector<KernelDef> onednn_kernels() { return {}; }

PrepareReorder cpu_reorder() { return nullptr; }

int set_cpu_threads(int) { return 1; }

void forget_cpu_kernels() {}
#endif

std::vector<KernelDef> simd_kernels() {
  std::vector<KernelDef> kernels{simd::softmax_kernel(),
                                 simd::log_softmax_kernel(),
                                 simd::lrn_kernel(),
                                 simd::layer_normalization_kernel(),
                                 simd::rms_normalization_kernel(),
                                 simd::attention_kernel(),
                                 simd::tiled_attention_kernel(),
                                 simd::tiled_attention_grad_kernel(),
                                 simd::transpose_kernel(),
                                 simd::top_k_kernel(),
                                 simd::fused_elementwise_kernel(),
                                 simd::fused_reduction_kernel(),
                                 simd::channel_gate_kernel(),
                                 simd::chosen_experts_kernel(),
                                 simd::elementwise_kernel(),
                                 simd::plane_depthwise_kernel(),
                                 simd::dynamic_quantize_lstm_kernel(),
                                 simd::block_matmul_kernel(),
                                 simd::lstm_gates_grad_kernel()};
  for (const auto& more :
       {simd::grouped_conv_kernels(), simd::winograd_conv_kernels(), simd::pointwise_conv_kernels(),
        simd::tap_conv_kernels(), simd::plane_conv_kernels(), simd::pixel_pool_kernels(), simd::recurrent_kernels(),
        simd::recurrent_grad_kernels(), simd::reduction_kernels(), simd::plane_normalization_kernels(),
        simd::arg_extreme_kernels(), simd::class_loss_kernels(), simd::gather_matmul_kernels()}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  return kernels;
}

std::vector<KernelDef> cpu_kernels() {
  std::vector<KernelDef> kernels = simd_kernels();
  for (const auto& more : {onednn_kernels(), simd::packed_gemm_kernels(), simd::weight_product_kernels(),
                           simd::quantized_product_kernels(), simd::plane_pool_kernels(), global_pool_kernels(),
                           pixel_normalization_kernels(), batch_norm_training_kernels(), box_copy_kernels(),
                           repeating_copy_kernels(), depth_space_kernels()}) {
    kernels.insert(kernels.end(), more.begin(), more.end());
  }
  for (const KernelDef& kernel : {simd::quantized_pair_kernel(),
                                  simd::integer_matmul_kernel(),
                                  simd::integer_conv_kernel(),
                                  byte_table_kernel(),
                                  half_cast_kernel(),
                                  dynamic_quantize_kernel(),
                                  batch_normalization_kernel(),
                                  concat_kernel(),
                                  split_kernel(),
                                  gather_kernel(),
                                  gather_elements_kernel(),
                                  gather_nd_kernel(),
                                  scatter_elements_kernel(),
                                  scatter_nd_kernel(),
                                  tensor_scatter_kernel(),
                                  grid_sample_kernel(),
                                  roi_align_kernel(),
                                  resize_kernel(),
                                  trilu_kernel(),
                                  cumulative_sum_kernel(),
                                  lp_normalization_kernel(),
                                  tree_ensemble_kernel(),
                                  philox_kernel(),
                                  simd::max_pool_grad_kernel(),
                                  layer_norm_grad_kernel(),
                                  elementwise_kernel()}) {
    kernels.push_back(kernel);
  }
  return kernels;
}

std::vector<KernelDef> cpu_kernels_with_bf16() {
  std::vector<KernelDef> kernels = bf16_kernels();
  for (const KernelDef& kernel : cpu_kernels()) kernels.push_back(kernel);
  return kernels;
}

}  // namespace autograph

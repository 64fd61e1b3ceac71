// Which emitters serve which op.
#include "backends/gpu/emit/emitted.h"
#include "backends/gpu/emit/families.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"

namespace autograph::gpu {
namespace {

// Is the op on strings alone?
bool is_on_text(const OpDef& op) { return !op.types.empty() && op.types[0].allowed == dtypes::kString; }

// What is drawn at random, and what training adds.
std::vector<Emitter> training_emitters() {
  return {
      {&conv_grad_weight_def(), emit_conv_grad_weight},
      {&batch_normalization_grad_def(), emit_batch_normalization_grad},
      {&layer_normalization_grad_def(), emit_layer_normalization_grad},
      {&max_pool_grad_def(), emit_max_pool_grad},
      {&lstm_gates_grad_def(), emit_gates_gradient},
      {&gru_gates_grad_def(), emit_gates_gradient},
      {&rnn_gates_grad_def(), emit_gates_gradient},
      {&philox_def(), emit_philox},
      {&random_uniform_def(), emit_random},
      {&random_normal_def(), emit_random},
      {&random_uniform_like_def(), emit_random},
      {&random_normal_like_def(), emit_random},
      {&bernoulli_def(), emit_bernoulli},
      {&multinomial_def(), emit_multinomial},
      {&dropout_def(), emit_dropout},
      {&negative_log_likelihood_loss_def(), emit_class_loss},
      {&softmax_cross_entropy_loss_def(), emit_class_loss},
      {&adagrad_def(), emit_optimizer},
      {&adam_def(), emit_optimizer},
      {&momentum_def(), emit_optimizer},
  };
}

std::vector<Emitter> make_emitters() {
  std::vector<Emitter> list{
      {&fused_def(), emit_elementwise},
      {&fused_def(), emit_reduction},
      {&fused_def(), emit_matmul},
      {&fused_def(), emit_gemm},
      {&fused_def(), emit_conv},
      {&attention_def(), emit_attention},
      {&rotary_embedding_def(), emit_rotary_embedding},
      {&linear_attention_def(), emit_linear_attention},
      {&matmul_def(), emit_matmul},
      {&matmul_integer_def(), emit_byte_matmul},
      {&qlinear_matmul_def(), emit_byte_matmul},
      {&gemm_def(), emit_gemm},
      {&det_def(), emit_det},
      {&conv_def(), emit_conv},
      {&conv_integer_def(), emit_byte_conv},
      {&qlinear_conv_def(), emit_byte_conv},
      {&causal_conv_with_state_def(), emit_causal_conv},
      {&dft_def(), emit_dft},
      {&stft_def(), emit_stft},
      {&conv_transpose_def(), emit_conv_transpose},
      {&deform_conv_def(), emit_deform_conv},
      {&resize_def(), emit_resize},
      {&grid_sample_def(), emit_grid_sample},
      {&roi_align_def(), emit_roi_align},
      {&max_roi_pool_def(), emit_max_roi_pool},
      {&affine_grid_def(), emit_affine_grid},
      {&softmax_def(), emit_softmax},
      {&log_softmax_def(), emit_softmax},
      {&lp_normalization_def(), emit_lp_normalization},
      {&mean_variance_normalization_def(), emit_mean_variance_normalization},
      {&layer_normalization_def(), emit_normalization},
      {&rms_normalization_def(), emit_normalization},
      {&group_normalization_def(), emit_normalization},
      {&instance_normalization_def(), emit_normalization},
      {&batch_normalization_def(), emit_batch_normalization},
      {&batch_normalization_def(), emit_batch_normalization_of_batch},
      {&max_pool_def(), emit_pool},
      {&max_unpool_def(), emit_max_unpool},
      {&col2im_def(), emit_col2im},
      {&average_pool_def(), emit_pool},
      {&lp_pool_def(), emit_pool},
      {&global_average_pool_def(), emit_global_pool},
      {&global_max_pool_def(), emit_global_pool},
      {&global_lp_pool_def(), emit_global_pool},
      {&lrn_def(), emit_lrn},
      {&dequantize_linear_def(), emit_dequantize},
      {&quantize_linear_def(), emit_quantize},
      {&dynamic_quantize_linear_def(), emit_dynamic_quantize},
      {&transpose_def(), emit_moves},
      {&slice_def(), emit_moves},
      {&expand_def(), emit_moves},
      {&tile_def(), emit_moves},
      {&split_def(), emit_moves},
      {&concat_def(), emit_moves},
      {&depth_to_space_def(), emit_moves},
      {&space_to_depth_def(), emit_moves},
      {&bit_cast_def(), emit_bit_cast},
      {&pad_def(), emit_pad},
      {&center_crop_pad_def(), emit_center_crop_pad},
      {&trilu_def(), emit_trilu},
      {&gather_def(), emit_gather},
      {&gather_elements_def(), emit_gather},
      {&reverse_sequence_def(), emit_reverse_sequence},
      {&gather_nd_def(), emit_gather_nd},
      {&scatter_elements_def(), emit_scatter},
      {&scatter_nd_def(), emit_scatter},
      {&tensor_scatter_def(), emit_tensor_scatter},
      {&one_hot_def(), emit_one_hot},
      {&arg_max_def(), emit_arg_extreme},
      {&arg_min_def(), emit_arg_extreme},
      {&hardmax_def(), emit_hardmax},
      {&cum_sum_def(), emit_cumulative},
      {&cum_prod_def(), emit_cumulative},
      {&top_k_def(), emit_top_k},
      {&lstm_def(), emit_recurrent},
      {&gru_def(), emit_recurrent},
      {&rnn_def(), emit_recurrent},
  };
  for (const Emitter& emitter : training_emitters()) list.push_back(emitter);
  for (const OpDef* op : all_ops()) {
    if (op->scalar && !is_on_text(*op)) list.push_back({op, emit_elementwise});
    if (is_reduction(*op)) list.push_back({op, emit_reduction});
  }
  return list;
}

// Only tensors whose positions can be written: a product beyond 63 bits throws.
std::string why_not_sizes(const KernelCall& call) {
  for (const auto& types : {call.inputs, call.outputs}) {
    for (const Type& type : types) {
      if (!type.is_tensor()) continue;
      if (type.dtype() == DType::string) return "strings";
      static_cast<void>(type.shape().num_elements());
    }
  }
  return "";
}

}  // namespace

const std::vector<Emitter>& emitters() {
  static const std::vector<Emitter> kEmitters = make_emitters();
  return kEmitters;
}

Emitted emit(const KernelCall& call, const Target& target) {
  std::string reasons = why_not_sizes(call);
  if (!reasons.empty()) return refused(reasons);
  for (const Emitter& emitter : emitters()) {
    if (emitter.op != &call.op) continue;
    Emitted emitted = emitter.emit(call, target);
    if (emitted.refusal.empty()) return emitted;
    reasons += (reasons.empty() ? "" : "; ") + emitted.refusal;
  }
  return refused(reasons.empty() ? "no kernel is generated for the op" : reasons);
}

}  // namespace autograph::gpu

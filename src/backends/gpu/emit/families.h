// The emitters, one for each family of ops. Each refuses what it cannot write, with the reason.
#pragma once

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// Elementwise ops and fused chains of them.
Emitted emit_elementwise(const KernelCall& call, const Target& target);
/// reduce_*, and fused chains that end in one.
Emitted emit_reduction(const KernelCall& call, const Target& target);
/// attention without scores as an output.
Emitted emit_attention(const KernelCall& call, const Target& target);
/// matmul, and fused bodies that begin with one.
Emitted emit_matmul(const KernelCall& call, const Target& target);
/// matmul_integer, and qlinear_matmul of bytes.
Emitted emit_byte_matmul(const KernelCall& call, const Target& target);
/// gemm of floats, and fused bodies that begin with one.
Emitted emit_gemm(const KernelCall& call, const Target& target);
/// det of matrices for which local memory has room.
Emitted emit_det(const KernelCall& call, const Target& target);
/// rotary_embedding.
Emitted emit_rotary_embedding(const KernelCall& call, const Target& target);
/// linear_attention.
Emitted emit_linear_attention(const KernelCall& call, const Target& target);
/// conv, and fused bodies that begin with one.
Emitted emit_conv(const KernelCall& call, const Target& target);
/// conv_integer and qlinear_conv.
Emitted emit_byte_conv(const KernelCall& call, const Target& target);
/// causal_conv_with_state.
Emitted emit_causal_conv(const KernelCall& call, const Target& target);
/// dft of lengths without large prime factors.
Emitted emit_dft(const KernelCall& call, const Target& target);
/// stft, likewise.
Emitted emit_stft(const KernelCall& call, const Target& target);
/// conv_transpose.
Emitted emit_conv_transpose(const KernelCall& call, const Target& target);
/// deform_conv.
Emitted emit_deform_conv(const KernelCall& call, const Target& target);
/// conv_grad_weight.
Emitted emit_conv_grad_weight(const KernelCall& call, const Target& target);
/// resize with a grid that is known.
Emitted emit_resize(const KernelCall& call, const Target& target);
/// grid_sample of floats.
Emitted emit_grid_sample(const KernelCall& call, const Target& target);
/// roi_align.
Emitted emit_roi_align(const KernelCall& call, const Target& target);
/// max_roi_pool.
Emitted emit_max_roi_pool(const KernelCall& call, const Target& target);
/// affine_grid.
Emitted emit_affine_grid(const KernelCall& call, const Target& target);
/// softmax and log_softmax.
Emitted emit_softmax(const KernelCall& call, const Target& target);
/// lp_normalization.
Emitted emit_lp_normalization(const KernelCall& call, const Target& target);
/// mean_variance_normalization.
Emitted emit_mean_variance_normalization(const KernelCall& call, const Target& target);
/// layer_, rms_, group_ and instance_normalization.
Emitted emit_normalization(const KernelCall& call, const Target& target);
/// batch_normalization with given statistics.
Emitted emit_batch_normalization(const KernelCall& call, const Target& target);
/// batch_normalization with the statistics of its batch.
Emitted emit_batch_normalization_of_batch(const KernelCall& call, const Target& target);
/// batch_normalization_grad.
Emitted emit_batch_normalization_grad(const KernelCall& call, const Target& target);
/// layer_normalization_grad.
Emitted emit_layer_normalization_grad(const KernelCall& call, const Target& target);
/// max_pool, average_pool, lp_pool.
Emitted emit_pool(const KernelCall& call, const Target& target);
/// max_pool_grad.
Emitted emit_max_pool_grad(const KernelCall& call, const Target& target);
/// max_unpool.
Emitted emit_max_unpool(const KernelCall& call, const Target& target);
/// col2im of numbers that are not complex.
Emitted emit_col2im(const KernelCall& call, const Target& target);
/// global_average_pool, global_max_pool, global_lp_pool.
Emitted emit_global_pool(const KernelCall& call, const Target& target);
/// lrn.
Emitted emit_lrn(const KernelCall& call, const Target& target);
/// dequantize_linear of integers of 8 to 32 bits.
Emitted emit_dequantize(const KernelCall& call, const Target& target);
/// quantize_linear to integers of 8 or 16 bits.
Emitted emit_quantize(const KernelCall& call, const Target& target);
/// dynamic_quantize_linear.
Emitted emit_dynamic_quantize(const KernelCall& call, const Target& target);
/// Ops that copy elements to other places: transpose, slice, concat, ...
Emitted emit_moves(const KernelCall& call, const Target& target);
/// bit_cast.
Emitted emit_bit_cast(const KernelCall& call, const Target& target);
/// pad.
Emitted emit_pad(const KernelCall& call, const Target& target);
/// center_crop_pad.
Emitted emit_center_crop_pad(const KernelCall& call, const Target& target);
/// trilu.
Emitted emit_trilu(const KernelCall& call, const Target& target);
/// gather and gather_elements.
Emitted emit_gather(const KernelCall& call, const Target& target);
/// reverse_sequence.
Emitted emit_reverse_sequence(const KernelCall& call, const Target& target);
/// gather_nd.
Emitted emit_gather_nd(const KernelCall& call, const Target& target);
/// scatter_elements and scatter_nd.
Emitted emit_scatter(const KernelCall& call, const Target& target);
/// tensor_scatter.
Emitted emit_tensor_scatter(const KernelCall& call, const Target& target);
/// one_hot.
Emitted emit_one_hot(const KernelCall& call, const Target& target);
/// arg_max and arg_min.
Emitted emit_arg_extreme(const KernelCall& call, const Target& target);
/// hardmax.
Emitted emit_hardmax(const KernelCall& call, const Target& target);
/// cum_sum and cum_prod.
Emitted emit_cumulative(const KernelCall& call, const Target& target);
/// top_k.
Emitted emit_top_k(const KernelCall& call, const Target& target);
/// lstm, gru and rnn.
Emitted emit_recurrent(const KernelCall& call, const Target& target);
/// lstm_gates_grad, gru_gates_grad and rnn_gates_grad.
Emitted emit_gates_gradient(const KernelCall& call, const Target& target);
/// negative_log_likelihood_loss and softmax_cross_entropy_loss.
Emitted emit_class_loss(const KernelCall& call, const Target& target);
/// philox.
Emitted emit_philox(const KernelCall& call, const Target& target);
/// random_uniform, random_normal and their _like forms, with a seed.
Emitted emit_random(const KernelCall& call, const Target& target);
/// bernoulli with a seed.
Emitted emit_bernoulli(const KernelCall& call, const Target& target);
/// multinomial with a seed.
Emitted emit_multinomial(const KernelCall& call, const Target& target);
/// dropout, with a seed in training.
Emitted emit_dropout(const KernelCall& call, const Target& target);
/// adagrad, adam, momentum.
Emitted emit_optimizer(const KernelCall& call, const Target& target);

}  // namespace autograph::gpu

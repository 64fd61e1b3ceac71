// One rule a family of ops. A rule says which elements of each input are read, and what the smaller call makes.
#include "accuracy/crop_call.h"

#include <algorithm>
#include <map>
#include <set>

#include "accuracy/crop_rules.h"
#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

using Rule = Cropped (*)(const WholeCall&, const Selection&);

size_t normalized(int64_t axis, size_t rank) {
  return static_cast<size_t>(front_axis(axis, static_cast<int64_t>(rank)));
}

Cropped elementwise(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (call.dims(slot).size() > wanted.size()) return std::nullopt;
    if (call.has(slot)) cropped.inputs[slot] = broadcast_selection(wanted, call.dims(slot));
  }
  return cropped;
}

// Input 0 as wanted, but some axes as a whole; the output has the same axes.
CroppedCall with_whole_axes(const WholeCall& call, const Selection& wanted, size_t begin, size_t end) {
  CroppedCall cropped = start_crop(call, wanted);
  const Dims in = call.dims(0);
  const Dims out = call.outputs[0].shape().static_dims();
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    const bool is_whole = axis >= begin && axis < end;
    if (is_whole) cropped.made[axis] = all_of(out[axis]);
    cropped.inputs[0][axis] = is_whole ? all_of(in[axis]) : wanted[axis];
  }
  return cropped;
}

Cropped along_axis(const WholeCall& call, const Selection& wanted) {
  const size_t axis = normalized(call.attributes.get_or<int64_t>("axis", -1), wanted.size());
  return with_whole_axes(call, wanted, axis, axis + 1);
}

Cropped along_channels(const WholeCall& call, const Selection& wanted) { return with_whole_axes(call, wanted, 1, 2); }

Cropped along_known_axis(const WholeCall& call, const Selection& wanted) {
  if (!call.known[1].is_present() || wanted.empty()) return std::nullopt;
  const size_t axis = normalized(call.known[1].to_i64()[0], wanted.size());
  return with_whole_axes(call, wanted, axis, axis + 1);
}

Cropped normalized_tail(const WholeCall& call, const Selection& wanted) {
  const size_t axis = normalized(call.attributes.get_or<int64_t>("axis", -1), wanted.size());
  for (const size_t slot : {1, 2}) {
    if (call.dims(slot).size() > wanted.size() - axis) return std::nullopt;
  }
  return with_whole_axes(call, wanted, axis, wanted.size());
}

// Channels as wanted, of all images: of tensors like x, and of parameters that have one number a channel.
Cropped whole_channels(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[1] = wanted[1];
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (call.has(slot)) cropped.inputs[slot][call.dims(slot).size() == 1 ? 0 : 1] = wanted[1];
  }
  return cropped;
}

// x by channels, and parameters of one number a channel.
Cropped per_channel(const WholeCall& call, const Selection& wanted) {
  if (wanted.size() < 2) return std::nullopt;
  if (call.attributes.flag("training_mode")) return whole_channels(call, wanted);
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0] = wanted;
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    if (call.has(slot)) cropped.inputs[slot] = {wanted[1]};
  }
  return cropped;
}

Cropped plane_normalization(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = with_whole_axes(call, wanted, 2, wanted.size());
  for (const size_t slot : {1, 2}) cropped.inputs[slot] = {wanted[1]};
  return cropped;
}

Cropped normalized_tail_gradient(const WholeCall& call, const Selection& wanted) {
  const size_t axis = normalized(call.attributes.get_or<int64_t>("axis", -1), wanted.size());
  CroppedCall cropped = with_whole_axes(call, wanted, axis, wanted.size());
  cropped.inputs[2] = cropped.inputs[0];
  return cropped;
}

// Over axes that an attribute lists; the output has them, too.
Cropped over_listed_axes(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = with_whole_axes(call, wanted, 0, 0);
  for (const int64_t listed : call.attributes.integers("axes")) {
    const size_t axis = normalized(listed, wanted.size());
    cropped.made[axis] = cropped.inputs[0][axis] = all_of(call.dims(0)[axis]);
  }
  return cropped;
}

// Images and channels as wanted, of all inputs.
Cropped per_plane(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = with_whole_axes(call, wanted, 2, wanted.size());
  for (Selection& input : cropped.inputs) std::copy_n(wanted.begin(), 2, input.begin());
  return cropped;
}

Cropped per_matrix(const WholeCall& call, const Selection& wanted) {
  return with_whole_axes(call, wanted, wanted.size() - 2, wanted.size());
}

// A loss for each label, from the scores of all classes on axis 1.
Cropped class_loss(const WholeCall& call, const Selection& wanted) {
  if (wanted.empty()) return std::nullopt;  // one for all
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0] = wanted;
  cropped.inputs[0].insert(cropped.inputs[0].begin() + 1, all_of(call.dims(0)[1]));
  cropped.inputs[1] = wanted;
  return cropped;
}

Cropped per_image(const WholeCall& call, const Selection& wanted) {
  return with_whole_axes(call, wanted, 1, wanted.size());
}

Cropped global_pool(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  for (const size_t axis : {0, 1}) cropped.inputs[0][axis] = wanted[axis];
  return cropped;
}

// Axes of the output without those that are reduced, when these are gone.
Cropped without_axes(const WholeCall& call, const Selection& wanted, const std::set<size_t>& reduced) {
  CroppedCall cropped = start_crop(call, wanted);
  const bool keeps = wanted.size() == call.dims(0).size();
  size_t at = 0;
  for (size_t axis = 0; axis < call.dims(0).size(); ++axis) {
    if (!reduced.contains(axis)) cropped.inputs[0][axis] = wanted[at];
    if (keeps || !reduced.contains(axis)) ++at;
  }
  return cropped;
}

Cropped reduction(const WholeCall& call, const Selection& wanted) {
  if (!call.has(1) || !call.known[1].is_present() || call.known[1].num_elements() == 0) return std::nullopt;
  std::set<size_t> axes;
  for (const int64_t axis : call.known[1].to_i64()) axes.insert(normalized(axis, call.dims(0).size()));
  return without_axes(call, wanted, axes);
}

Cropped arg_extreme(const WholeCall& call, const Selection& wanted) {
  return without_axes(call, wanted, {normalized(call.attributes.get_or<int64_t>("axis", 0), call.dims(0).size())});
}

Cropped transpose(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  const auto* perm = call.attributes.find_as<std::vector<int64_t>>("perm");
  for (size_t axis = 0; axis < wanted.size(); ++axis) {
    const size_t from = perm ? static_cast<size_t>((*perm)[axis]) : wanted.size() - 1 - axis;
    cropped.inputs[0][from] = wanted[axis];
  }
  return cropped;
}

Cropped concat(const WholeCall& call, const Selection& wanted) {
  const size_t joined = normalized(call.attributes.integer("axis"), wanted.size());
  CroppedCall cropped = with_whole_axes(call, wanted, joined, joined + 1);
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    for (size_t axis = 0; axis < wanted.size(); ++axis) {
      if (axis != joined) cropped.inputs[slot][axis] = wanted[axis];
    }
  }
  return cropped;
}

// A scale for all, or one for each position of an axis.
Cropped scaled_bytes(const WholeCall& call, const Selection& wanted) {
  if (call.attributes.get_or<int64_t>("block_size", 0) != 0) return std::nullopt;
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0] = wanted;
  for (const size_t slot : {1, 2}) {
    if (call.dims(slot).empty() || (call.dims(slot)[0] == 1 && wanted.empty())) continue;
    const size_t axis = normalized(call.attributes.get_or<int64_t>("axis", 1), wanted.size());
    if (axis < wanted.size() && call.dims(slot)[0] != 1) cropped.inputs[slot] = {wanted[axis]};
  }
  return cropped;
}

// ---- Products ------------------------------------------------------------------------------------------------------

// Of inputs 0 and `b`; all others have one element.
Cropped product(const WholeCall& call, const Selection& wanted, size_t b) {
  const size_t rank_a = call.dims(0).size();
  const size_t rank_b = call.dims(b).size();
  if (rank_a < 2 || rank_b < 2) return std::nullopt;
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    const Dims dims = call.dims(slot);
    if (slot != b && !dims.empty() && dims != Dims{1}) return std::nullopt;
  }
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0] = broadcast_selection(wanted, call.dims(0));
  cropped.inputs[b] = broadcast_selection(wanted, call.dims(b));
  cropped.inputs[0][rank_a - 1] = all_of(call.dims(0)[rank_a - 1]);
  cropped.inputs[b][rank_b - 2] = all_of(call.dims(b)[rank_b - 2]);
  cropped.inputs[0][rank_a - 2] = wanted[wanted.size() - 2];
  cropped.inputs[b][rank_b - 1] = wanted[wanted.size() - 1];
  return cropped;
}

Cropped matmul(const WholeCall& call, const Selection& wanted) { return product(call, wanted, 1); }

Cropped qlinear_matmul(const WholeCall& call, const Selection& wanted) { return product(call, wanted, 3); }

// Rows of x, and columns of weights that are packed by column.
Cropped block_matmul(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  std::copy(wanted.begin(), wanted.end() - 1, cropped.inputs[0].begin());
  for (size_t slot = 1; slot < call.inputs.size(); ++slot) {
    if (call.has(slot)) cropped.inputs[slot][0] = wanted.back();
  }
  return cropped;
}

// Rows of x, of as many tokens and choices, and columns of all matrices.
Cropped gather_matmul(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0][0] = wanted[0];
  if (call.dims(0)[1] != 1) cropped.inputs[0][1] = wanted[1];
  cropped.inputs[1] = {wanted[0], wanted[1]};
  for (size_t slot = 2; slot < call.inputs.size(); ++slot) {
    if (call.has(slot)) cropped.inputs[slot][1] = wanted[2];
  }
  return cropped;
}

Cropped gemm(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, wanted);
  cropped.inputs[0][call.attributes.flag("transA") ? 1 : 0] = wanted[0];
  cropped.inputs[1][call.attributes.flag("transB") ? 0 : 1] = wanted[1];
  if (call.has(2)) cropped.inputs[2] = broadcast_selection(wanted, call.dims(2));
  return cropped;
}

// ---- Attention, recurrent layers -----------------------------------------------------------------------------------

Cropped tiled_attention(const WholeCall& call, const Selection& wanted) {
  const auto has_window = [&](const char* name) { return call.attributes.get_or<int64_t>(name, -1) >= 0; };
  const bool is_ordered =
      call.attributes.flag("is_causal") || has_window("left_window_size") || has_window("right_window_size");
  const size_t rank = wanted.size();
  CroppedCall cropped = with_whole_axes(call, wanted, is_ordered ? rank - 2 : rank - 1, rank);
  cropped.made[rank - 1] = all_of(call.outputs[0].shape().static_dims()[rank - 1]);
  cropped.inputs[0][rank - 1] = all_of(call.dims(0)[rank - 1]);
  for (const size_t slot : {1, 2}) cropped.inputs[slot][0] = wanted[0];
  if (rank == 4) {
    const int64_t shared = call.dims(0)[1] / call.dims(1)[1];  // query heads of one key head
    for (const size_t slot : {1, 2}) {
      cropped.inputs[slot][1].clear();
      for (const int64_t head : wanted[1]) cropped.inputs[slot][1].push_back(head / shared);
    }
  }
  if (!call.has(3)) return cropped;
  const Dims mask = call.dims(3);
  const std::vector<int64_t> heads = rank == 4 ? wanted[1] : all_of(call.attributes.integer("q_num_heads"));
  const Selection whole{wanted[0], heads, cropped.made[rank - 2], all_of(mask.back())};
  if (mask.size() > whole.size()) return std::nullopt;
  cropped.inputs[3] = broadcast_selection(whole, mask);
  return cropped;
}

// Without a cache: what it gives back is made of other elements.
Cropped attention(const WholeCall& call, const Selection& wanted) {
  if (call.outputs.size() > 1 || call.has(4) || call.has(5) || call.has(6)) return std::nullopt;
  return tiled_attention(call, wanted);
}

// Entries of the batch. Masks of lower rank are the same for all.
Cropped tiled_attention_gradient(const WholeCall& call, const Selection& wanted) {
  constexpr size_t kMask = 6;
  CroppedCall cropped = with_whole_axes(call, wanted, 1, wanted.size());
  for (size_t slot = 1; slot < kMask; ++slot) cropped.inputs[slot][0] = wanted[0];
  const Dims mask = call.dims(kMask);
  if (mask.size() == 4 && mask[0] > 1) cropped.inputs[kMask][0] = wanted[0];
  return cropped;
}

// Sequences of a batch go their own ways.
Cropped recurrent(const WholeCall& call, const Selection& wanted) {
  if (call.attributes.get_or<int64_t>("layout", 0) != 0 || wanted.size() != 4) return std::nullopt;
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[2] = wanted[2];
  cropped.inputs[0][1] = wanted[2];
  if (call.has(4)) cropped.inputs[4] = {wanted[2]};  // lengths
  for (const size_t initial : {5, 6}) {
    if (call.has(initial)) cropped.inputs[initial][1] = wanted[2];
  }
  return cropped;
}

// The same of what only the steps of an LSTM's gradient do: [length, batch, ...] and [batch, ...].
Cropped lstm_gates_gradient(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[1] = cropped.inputs[0][1] = cropped.inputs[3][1] = wanted[1];
  cropped.inputs[2][0] = cropped.inputs[4][0] = wanted[1];
  return cropped;
}

// Of a GRU's and of a plain layer's.
Cropped gru_gates_gradient(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[1] = cropped.inputs[0][1] = cropped.inputs[2][1] = cropped.inputs[3][1] = wanted[1];
  return cropped;
}

Cropped rnn_gates_gradient(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start_crop(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[1] = cropped.inputs[0][1] = cropped.inputs[2][1] = wanted[1];
  return cropped;
}

const std::map<const OpDef*, Rule>& rules() {
  static const std::map<const OpDef*, Rule> kRules = {
      {&arg_max_def(), arg_extreme},
      {&arg_min_def(), arg_extreme},
      {&attention_def(), attention},
      {&average_pool_def(), crop_pool},
      {&batch_normalization_def(), per_channel},
      {&batch_normalization_grad_def(), whole_channels},
      {&block_matmul_def(), block_matmul},
      {&concat_def(), concat},
      {&conv_def(), crop_conv},
      {&conv_grad_weight_def(), crop_conv_grad_weight},
      {&conv_integer_def(), crop_conv_integer},
      {&conv_transpose_def(), crop_conv_transpose},
      {&cum_sum_def(), along_known_axis},
      {&depth_to_space_def(), per_image},
      {&dequantize_linear_def(), scaled_bytes},
      {&dynamic_quantize_lstm_def(), recurrent},
      {&gather_block_matmul_def(), gather_matmul},
      {&gather_def(), crop_gather},
      {&gather_elements_def(), crop_gather_elements},
      {&gather_matmul_def(), gather_matmul},
      {&gather_nd_def(), crop_gather_nd},
      {&gemm_def(), gemm},
      {&global_average_pool_def(), global_pool},
      {&global_max_pool_def(), global_pool},
      {&grid_sample_def(), crop_grid_sample},
      {&group_normalization_def(), per_image},
      {&gru_def(), recurrent},
      {&gru_gates_grad_def(), gru_gates_gradient},
      {&hardmax_def(), along_axis},
      {&instance_normalization_def(), plane_normalization},
      {&layer_normalization_def(), normalized_tail},
      {&layer_normalization_grad_def(), normalized_tail_gradient},
      {&log_softmax_def(), along_axis},
      {&lp_normalization_def(), along_axis},
      {&lp_pool_def(), crop_pool},
      {&lrn_def(), along_channels},
      {&lstm_def(), recurrent},
      {&lstm_gates_grad_def(), lstm_gates_gradient},
      {&matmul_def(), matmul},
      {&matmul_integer_def(), matmul},
      {&max_pool_def(), crop_pool},
      {&max_pool_grad_def(), per_plane},
      {&mean_variance_normalization_def(), over_listed_axes},
      {&negative_log_likelihood_loss_def(), class_loss},
      {&qlinear_conv_def(), crop_qlinear_conv},
      {&qlinear_matmul_def(), qlinear_matmul},
      {&quantize_linear_def(), scaled_bytes},
      {&resize_def(), crop_resize},
      {&rms_normalization_def(), normalized_tail},
      {&rnn_def(), recurrent},
      {&rnn_gates_grad_def(), rnn_gates_gradient},
      {&scatter_elements_def(), crop_scatter_elements},
      {&scatter_nd_def(), crop_scatter_nd},
      {&softmax_cross_entropy_loss_def(), class_loss},
      {&softmax_def(), along_axis},
      {&space_to_depth_def(), per_image},
      {&tiled_attention_def(), tiled_attention},
      {&tiled_attention_grad_def(), tiled_attention_gradient},
      {&top_k_def(), along_axis},
      {&transpose_def(), transpose},
      {&tree_ensemble_def(), per_image},
      {&trilu_def(), per_matrix},
  };
  return kRules;
}

}  // namespace

CroppedCall start_crop(const WholeCall& call, const Selection& made) {
  CroppedCall cropped{{}, call.attributes, made};
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) cropped.inputs.push_back(select_all(call.dims(slot)));
  return cropped;
}

std::vector<int64_t> all_of(int64_t extent) { return select_all({extent})[0]; }

std::optional<CroppedCall> crop_call(const WholeCall& call, const Selection& wanted) {
  for (const auto& positions : wanted) {
    if (positions.empty()) return std::nullopt;
  }
  if (call.op.scalar) return elementwise(call, wanted);
  if (is_reduction(call.op)) return reduction(call, wanted);
  const auto rule = rules().find(&call.op);
  return rule == rules().end() ? std::nullopt : rule->second(call, wanted);
}

size_t first_window_axis(const WholeCall& call) {
  const OpDef* const windows[] = {&conv_def(),     &conv_integer_def(), &qlinear_conv_def(),
                                  &max_pool_def(), &average_pool_def(), &lp_pool_def()};
  const bool slides = std::find(std::begin(windows), std::end(windows), &call.op) != std::end(windows);
  return slides ? 2 : call.outputs[0].shape().static_dims().size();
}

}  // namespace autograph

// One rule a family of ops. A rule says which elements of each input are read, and what the smaller call makes.
#include "accuracy/crop_call.h"

#include <algorithm>
#include <map>
#include <set>

#include "ops/defs.h"
#include "ops/reduction/axes.h"
#include "ops/window/window_geometry.h"

namespace autograph {
namespace {

using Cropped = std::optional<CroppedCall>;
using Rule = Cropped (*)(const WholeCall&, const Selection&);

// All inputs as a whole, to start from.
CroppedCall start(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped{{}, call.attributes, wanted};
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) cropped.inputs.push_back(select_all(call.dims(slot)));
  return cropped;
}

std::vector<int64_t> all_of(int64_t extent) { return select_all({extent})[0]; }

size_t normalized(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

Cropped elementwise(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start(call, wanted);
  for (size_t slot = 0; slot < call.inputs.size(); ++slot) {
    if (call.dims(slot).size() > wanted.size()) return std::nullopt;
    if (call.has(slot)) cropped.inputs[slot] = broadcast_selection(wanted, call.dims(slot));
  }
  return cropped;
}

// Input 0 as wanted, but some axes as a whole; the output has the same axes.
CroppedCall with_whole_axes(const WholeCall& call, const Selection& wanted, size_t begin, size_t end) {
  CroppedCall cropped = start(call, wanted);
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

// x by channels, and parameters of one number a channel.
Cropped per_channel(const WholeCall& call, const Selection& wanted) {
  if (call.attributes.flag("training_mode") || wanted.size() < 2) return std::nullopt;
  CroppedCall cropped = start(call, wanted);
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

Cropped per_image(const WholeCall& call, const Selection& wanted) {
  return with_whole_axes(call, wanted, 1, wanted.size());
}

Cropped global_pool(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start(call, wanted);
  for (const size_t axis : {0, 1}) cropped.inputs[0][axis] = wanted[axis];
  return cropped;
}

// Axes of the output without those that are reduced, when these are gone.
Cropped without_axes(const WholeCall& call, const Selection& wanted, const std::set<size_t>& reduced) {
  CroppedCall cropped = start(call, wanted);
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
  CroppedCall cropped = start(call, wanted);
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
  CroppedCall cropped = start(call, wanted);
  cropped.inputs[0] = wanted;
  for (const size_t slot : {1, 2}) {
    if (call.dims(slot).empty() || (call.dims(slot)[0] == 1 && wanted.empty())) continue;
    const size_t axis = normalized(call.attributes.get_or<int64_t>("axis", 1), wanted.size());
    if (axis < wanted.size() && call.dims(slot)[0] != 1) cropped.inputs[slot] = {wanted[axis]};
  }
  return cropped;
}

// ---- Products ------------------------------------------------------------------------------------------------------

Cropped matmul(const WholeCall& call, const Selection& wanted) {
  const size_t rank_a = call.dims(0).size();
  const size_t rank_b = call.dims(1).size();
  if (rank_a < 2 || rank_b < 2) return std::nullopt;
  for (const size_t zero_point : {2, 3}) {
    const Dims dims = call.dims(zero_point);
    if (!dims.empty() && dims != Dims{1}) return std::nullopt;
  }
  CroppedCall cropped = start(call, wanted);
  cropped.inputs[0] = broadcast_selection(wanted, call.dims(0));
  cropped.inputs[1] = broadcast_selection(wanted, call.dims(1));
  cropped.inputs[0][rank_a - 1] = all_of(call.dims(0)[rank_a - 1]);
  cropped.inputs[1][rank_b - 2] = all_of(call.dims(1)[rank_b - 2]);
  cropped.inputs[0][rank_a - 2] = wanted[wanted.size() - 2];
  cropped.inputs[1][rank_b - 1] = wanted[wanted.size() - 1];
  return cropped;
}

Cropped gemm(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start(call, wanted);
  cropped.inputs[0][call.attributes.flag("transA") ? 1 : 0] = wanted[0];
  cropped.inputs[1][call.attributes.flag("transB") ? 0 : 1] = wanted[1];
  if (call.has(2)) cropped.inputs[2] = broadcast_selection(wanted, call.dims(2));
  return cropped;
}

// ---- Windows -------------------------------------------------------------------------------------------------------

// The part of x under the windows of a stretch of outputs on each spatial axis, with the padding that is left there.
bool crop_windows(const WholeCall& call, const Dims& kernel, const Selection& wanted, CroppedCall& cropped) {
  const Dims in = call.dims(0);
  const size_t spatial = in.size() - 2;
  const auto windows = resolve_windows(window_spec(call.attributes, kernel), std::span(in).subspan(2));
  std::vector<int64_t> pads(2 * spatial, 0);
  for (size_t axis = 0; axis < spatial; ++axis) {
    const WindowAxis& window = windows[axis];
    const auto [low, high] = std::minmax_element(wanted[axis + 2].begin(), wanted[axis + 2].end());
    const int64_t begin = *low * window.stride - window.pad_begin;
    const int64_t end = *high * window.stride - window.pad_begin + (window.kernel - 1) * window.dilation + 1;
    const int64_t from = std::clamp<int64_t>(begin, 0, window.in);
    const int64_t to = std::clamp<int64_t>(end, 0, window.in);
    if (from >= to) return false;
    pads[axis] = from - begin;
    pads[axis + spatial] = end - to;
    cropped.inputs[0][axis + 2] = select_all({window.in})[0];
    cropped.inputs[0][axis + 2] = {cropped.inputs[0][axis + 2].begin() + from,
                                   cropped.inputs[0][axis + 2].begin() + to};
    cropped.made[axis + 2].clear();
    for (int64_t o = *low; o <= *high; ++o) cropped.made[axis + 2].push_back(o);
  }
  cropped.attributes.set("pads", pads);
  cropped.attributes.set("auto_pad", std::string("NOTSET"));
  return true;
}

Cropped pool(const WholeCall& call, const Selection& wanted) {
  // Windows that reach over the padding count otherwise in means.
  if (call.attributes.flag("ceil_mode") && &call.op != &max_pool_def()) return std::nullopt;
  CroppedCall cropped = start(call, wanted);
  for (const size_t axis : {0, 1}) cropped.inputs[0][axis] = wanted[axis];
  if (!crop_windows(call, call.attributes.integers("kernel_shape"), wanted, cropped)) return std::nullopt;
  if (call.attributes.flag("ceil_mode")) cropped.attributes.set("ceil_mode", int64_t{0});
  return cropped;
}

// The smaller call has as many output channels of each group that it has any of.
Cropped conv(const WholeCall& call, const Selection& wanted) {
  const Dims weights = call.dims(1);
  const int64_t group_size = weights[0] / call.attributes.get_or<int64_t>("group", 1);
  std::set<int64_t> groups;
  std::set<int64_t> offsets;
  for (const int64_t channel : wanted[1]) {
    groups.insert(channel / group_size);
    offsets.insert(channel % group_size);
  }
  CroppedCall cropped = start(call, wanted);
  cropped.inputs[0][0] = wanted[0];
  cropped.inputs[0][1].clear();
  cropped.made[1].clear();
  for (const int64_t group : groups) {
    for (int64_t c = 0; c < weights[1]; ++c) cropped.inputs[0][1].push_back(group * weights[1] + c);
    for (const int64_t offset : offsets) cropped.made[1].push_back(group * group_size + offset);
  }
  cropped.inputs[1][0] = cropped.made[1];
  if (call.has(2)) cropped.inputs[2] = {cropped.made[1]};
  cropped.attributes.set("group", static_cast<int64_t>(groups.size()));
  if (!crop_windows(call, Dims(weights.begin() + 2, weights.end()), wanted, cropped)) return std::nullopt;
  return cropped;
}

// Images of the batch, and output channels where they are no matter of groups.
Cropped conv_transpose(const WholeCall& call, const Selection& wanted) {
  CroppedCall cropped = start(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[0] = wanted[0];
  cropped.inputs[0][0] = wanted[0];
  if (call.attributes.get_or<int64_t>("group", 1) > 1) return cropped;
  cropped.made[1] = wanted[1];
  cropped.inputs[1][1] = wanted[1];
  if (call.has(2)) cropped.inputs[2] = {wanted[1]};
  return cropped;
}

// Every weight takes two channels, one of x and one of gy.
Cropped conv_grad_weight(const WholeCall& call, const Selection& wanted) {
  if (call.attributes.get_or<int64_t>("group", 1) > 1) return std::nullopt;
  CroppedCall cropped = start(call, select_all(call.outputs[0].shape().static_dims()));
  for (const size_t axis : {size_t{0}, size_t{1}}) {
    cropped.made[axis] = wanted[axis];
    cropped.inputs[1 - axis][1] = wanted[axis];
  }
  return cropped;
}

// ---- Attention, recurrent layers -----------------------------------------------------------------------------------

Cropped attention(const WholeCall& call, const Selection& wanted) {
  const auto has_window = [&](const char* name) { return call.attributes.get_or<int64_t>(name, -1) >= 0; };
  if (call.outputs.size() > 1 || call.has(4) || call.has(5) || call.has(6)) return std::nullopt;
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

// Sequences of a batch go their own ways.
Cropped recurrent(const WholeCall& call, const Selection& wanted) {
  if (call.attributes.get_or<int64_t>("layout", 0) != 0 || wanted.size() != 4) return std::nullopt;
  CroppedCall cropped = start(call, select_all(call.outputs[0].shape().static_dims()));
  cropped.made[2] = wanted[2];
  cropped.inputs[0][1] = wanted[2];
  for (size_t slot = 4; slot < call.inputs.size(); ++slot) {
    const size_t rank = call.dims(slot).size();
    if (rank == 1) cropped.inputs[slot] = {wanted[2]};
    if (rank == 3) cropped.inputs[slot][1] = wanted[2];
  }
  return cropped;
}

const std::map<const OpDef*, Rule>& rules() {
  static const std::map<const OpDef*, Rule> kRules = {
      {&arg_max_def(), arg_extreme},
      {&arg_min_def(), arg_extreme},
      {&attention_def(), attention},
      {&average_pool_def(), pool},
      {&batch_normalization_def(), per_channel},
      {&concat_def(), concat},
      {&conv_def(), conv},
      {&conv_grad_weight_def(), conv_grad_weight},
      {&conv_transpose_def(), conv_transpose},
      {&cum_sum_def(), along_known_axis},
      {&dequantize_linear_def(), scaled_bytes},
      {&dynamic_quantize_lstm_def(), recurrent},
      {&gemm_def(), gemm},
      {&global_average_pool_def(), global_pool},
      {&global_max_pool_def(), global_pool},
      {&group_normalization_def(), per_image},
      {&gru_def(), recurrent},
      {&hardmax_def(), along_axis},
      {&instance_normalization_def(), plane_normalization},
      {&layer_normalization_def(), normalized_tail},
      {&log_softmax_def(), along_axis},
      {&lp_normalization_def(), along_axis},
      {&lp_pool_def(), pool},
      {&lrn_def(), along_channels},
      {&lstm_def(), recurrent},
      {&matmul_def(), matmul},
      {&matmul_integer_def(), matmul},
      {&max_pool_def(), pool},
      {&quantize_linear_def(), scaled_bytes},
      {&rms_normalization_def(), normalized_tail},
      {&rnn_def(), recurrent},
      {&softmax_def(), along_axis},
      {&top_k_def(), along_axis},
      {&transpose_def(), transpose},
  };
  return kRules;
}

}  // namespace

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
  const OpDef* const windows[] = {&conv_def(), &max_pool_def(), &average_pool_def(), &lp_pool_def()};
  const bool slides = std::find(std::begin(windows), std::end(windows), &call.op) != std::end(windows);
  return slides ? 2 : call.outputs[0].shape().static_dims().size();
}

}  // namespace autograph

// Small calls of softmax and of normalizations.
#include "ops/defs.h"
#include "prove/verify/draft/call_draft.h"

namespace autograph {
namespace {

void choose_axis(CallDraft& draft, Choices& choices) {
  std::vector<std::optional<AttributeValue>> axes;
  const auto rank = static_cast<int64_t>(draft.dims(0).size());
  for (int64_t axis = -rank; axis < rank; ++axis) axes.emplace_back(axis);
  if (!axes.empty()) draft.choose(choices, "axis", axes);
}

void complete_softmax(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  choose_axis(draft, choices);
}

// Layer and RMS normalization: scale and bias have the dims from the axis on.
void complete_layer(CallDraft& draft, Choices& choices) {
  complete_softmax(draft, choices);
  const Dims& x = draft.dims(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = draft.attributes.get_or<int64_t>("axis", -1);
  axis = std::clamp<int64_t>(axis < 0 ? axis + rank : axis, 0, rank);
  const Dims normalized(x.begin() + axis, x.end());
  for (const size_t slot : {1U, 2U}) {
    if (draft.is_open(slot)) draft.set_dims(slot, normalized);
  }
  draft.choose(choices, "epsilon", {1e-5F, 1e-3F});
  draft.choose(choices, "stash_type", {std::nullopt});
}

// Batch, instance and group normalization: parameters by channel.
void complete_channels(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 2, 4));
  const int64_t channels = draft.dims(0).size() > 1 ? draft.dims(0)[1] : 1;
  for (size_t slot = 1; slot <= 4; ++slot) {
    if (draft.is_open(slot)) draft.set_dims(slot, {channels});
  }
  if (draft.has(4)) draft.inputs[4].positive = true;
  draft.choose(choices, "epsilon", {1e-5F, 1e-3F});
  draft.choose(choices, "momentum", {0.9F, 0.5F});
  draft.choose(choices, "training_mode", {int64_t{0}, int64_t{1}});
  draft.choose(choices, "num_groups", divisors_of(channels));
  draft.choose(choices, "stash_type", {std::nullopt});
}

}  // namespace

bool complete_row(CallDraft& draft, Choices& choices) {
  const OpDef& op = *draft.op;
  if (&op == &softmax_def() || &op == &log_softmax_def() || &op == &hardmax_def()) {
    complete_softmax(draft, choices);
  } else if (&op == &layer_normalization_def() || &op == &rms_normalization_def()) {
    complete_layer(draft, choices);
  } else if (&op == &batch_normalization_def() || &op == &instance_normalization_def() ||
             &op == &group_normalization_def()) {
    complete_channels(draft, choices);
  } else {
    return false;
  }
  return true;
}

}  // namespace autograph

// Small calls of softmax and of normalizations.
#include <algorithm>

#include "ops/defs.h"
#include "prove/verify/draft/call_draft.h"
#include "tensor/front_axis.h"

namespace autograph {
namespace {

void complete_softmax(CallDraft& draft, Choices& choices) {
  if (draft.is_open(0)) draft.set_dims(0, choose_dims(draft, choices, 1, 4));
  choose_axis(draft, choices, draft.dims(0).size());
}

// Layer and RMS normalization: scale and bias have the dims from the axis on.
void complete_layer(CallDraft& draft, Choices& choices) {
  complete_softmax(draft, choices);
  const Dims& x = draft.dims(0);
  const auto rank = static_cast<int64_t>(x.size());
  int64_t axis = draft.attributes.get_or<int64_t>("axis", -1);
  axis = std::clamp<int64_t>(front_axis(axis, rank), 0, rank);
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

std::vector<CallFamily> row_calls() {
  return {{{&softmax_def(), &log_softmax_def(), &hardmax_def()}, complete_softmax},
          {{&layer_normalization_def(), &rms_normalization_def()}, complete_layer},
          {{&batch_normalization_def(), &instance_normalization_def(), &group_normalization_def()}, complete_channels}};
}

}  // namespace autograph

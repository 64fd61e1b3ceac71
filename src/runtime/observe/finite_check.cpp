#include "runtime/observe/finite_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/error.h"
#include "autograph/statistics.h"

namespace autograph {

FiniteCheck::FiniteCheck(const CompiledPlan& compiled)
    : compiled_(compiled), states_(compiled.plan.slots.size(), State::unknown) {}

void FiniteCheck::begin_run() {
  for (size_t s = 0; s < states_.size(); ++s) {
    if (compiled_.plan.slots[s].place != Place::weight) states_[s] = State::unknown;
  }
}

// That of the slot that was written, where this one is a view of it.
FiniteCheck::State& FiniteCheck::state_of(SlotIndex slot) {
  const SlotIndex source = compiled_.plan.slots[slot].source;
  return states_[source == kNoSlot ? slot : source];
}

bool FiniteCheck::is_finite(SlotIndex slot, FindNonfinite find) {
  State& state = state_of(slot);
  if (state == State::unknown) state = find(slot) < 0 ? State::finite : State::not_finite;
  return state == State::finite;
}

bool FiniteCheck::has_finite_inputs(size_t number, FindNonfinite find) {
  bool all = true;
  for (const SlotIndex slot : compiled_.plan.steps[number].inputs) {
    // All of them, for steps to come.
    if (slot != kNoSlot) all = is_finite(slot, find) && all;
  }
  return all;
}

void FiniteCheck::check_outputs(size_t number, bool inputs_are_finite, FindNonfinite find, ReadSlot read) {
  const Step& step = compiled_.plan.steps[number];
  for (size_t k = 0; k < step.outputs.size(); ++k) {
    const SlotIndex slot = step.outputs[k];
    if (slot == kNoSlot) continue;
    if (step.is_reorder()) {
      state_of(slot) = state_of(step.inputs[0]);
      continue;
    }
    const int64_t at = find(slot);
    state_of(slot) = at < 0 ? State::finite : State::not_finite;
    if (at < 0 || !inputs_are_finite) continue;
    throw UserError(fmt::format("[check_nan] output {}: element {} is NaN or infinite, all inputs are finite{}", k, at,
                                describe_inputs(step, read)),
                    ExitCode::failed);
  }
}

std::string FiniteCheck::describe_inputs(const Step& step, ReadSlot read) const {
  std::string text;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Datum value = step.inputs[i] == kNoSlot ? Datum() : read(step.inputs[i]);
    if (!value.is_tensor()) continue;
    const auto statistics = statistics_of(value.tensor().view());
    text += fmt::format("{} {} {}", text.empty() ? ": input" : "; input", i, to_string(value.tensor().type()));
    if (statistics) text += fmt::format(" has {}", to_string(*statistics));
  }
  return text;
}

}  // namespace autograph

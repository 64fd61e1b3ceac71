#include "runtime/observe/finite_check.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/error.h"
#include "autograph/statistics.h"
#include "base/printable.h"

namespace autograph {
namespace {

// Elements are counted in row-major order, whatever layout they were found in.
int64_t place_of(const Nonfinite& found, const Datum& row_major) {
  const Nonfinite there = row_major.is_tensor() ? find_worst(row_major.tensor().view()) : Nonfinite();
  return there.at < 0 ? found.at : there.at;
}

}  // namespace

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
  if (state == State::unknown) state = find(slot).at < 0 ? State::finite : State::not_finite;
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
    const Nonfinite worst = find(slot);
    state_of(slot) = worst.at < 0 ? State::finite : State::not_finite;
    if (worst.at < 0 || (!worst.is_nan && !inputs_are_finite)) continue;
    throw NonfiniteError(fmt::format("[check_nan] output {}: element {} is {}, {}{}", k, place_of(worst, read(slot)),
                                     worst.is_nan ? "NaN" : "infinite",
                                     inputs_are_finite ? "all inputs are finite" : describe_cause(step, read),
                                     describe_inputs(step, read)));
  }
}

// The first input that is NaN; without one NaN comes of infinities, as their difference.
std::string FiniteCheck::describe_cause(const Step& step, ReadSlot read) const {
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Datum value = step.inputs[i] == kNoSlot ? Datum() : read(step.inputs[i]);
    const Nonfinite worst = value.is_tensor() ? find_worst(value.tensor().view()) : Nonfinite();
    if (worst.is_nan) return fmt::format("as is element {} of {}", worst.at, describe_input(step, i));
  }
  return "inputs hold infinities and no NaN";
}

// "input 1 'fc.weight'", and what it is where no node made it.
std::string FiniteCheck::describe_input(const Step& step, size_t i) const {
  const Value& value = compiled_.graph->value(compiled_.plan.slots[step.inputs[i]].value);
  std::string text = fmt::format("input {}", i);
  if (!value.name().empty()) text += fmt::format(" '{}'", printable(value.name()));
  if (value.is_constant()) text += " (a constant)";
  if (value.is_input()) text += " (an input of the graph)";
  return text;
}

std::string FiniteCheck::describe_inputs(const Step& step, ReadSlot read) const {
  std::string text;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const Datum value = step.inputs[i] == kNoSlot ? Datum() : read(step.inputs[i]);
    if (!value.is_tensor()) continue;
    const auto statistics = statistics_of(value.tensor().view());
    text +=
        fmt::format("{}{} {}", text.empty() ? ": " : "; ", describe_input(step, i), to_string(value.tensor().type()));
    if (statistics) text += fmt::format(" has {}", to_string(*statistics));
  }
  return text;
}

}  // namespace autograph

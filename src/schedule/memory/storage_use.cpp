#include "schedule/memory/storage_use.h"

#include <algorithm>
#include <iterator>

namespace autograph {

StorageUse::StorageUse(const Plan& plan) : plan_(plan), order_(plan), uses_(plan.slots.size()) {
  const auto end = static_cast<uint32_t>(plan.steps.size());
  for (uint32_t number = 0; number < end; ++number) {
    for (const SlotIndex s : plan.steps[number].inputs) add(s, number);
    for (const SlotIndex s : plan.steps[number].outputs) add(s, number);
  }
  for (const PlanOutput& output : plan.outputs) uses_[plan.slots[output.slot].root].last = {end};
}

// Called in the order of the steps.
void StorageUse::add(SlotIndex slot, uint32_t number) {
  if (slot == kNoSlot) return;
  Occupancy& use = uses_[plan_.slots[slot].root];
  const Step& step = plan_.steps[number];
  const auto is_in_stream = [&](uint32_t other) { return plan_.steps[other].stream == step.stream; };
  const auto is_new_to = [&](const std::vector<uint32_t>& steps) {
    return std::none_of(steps.begin(), steps.end(), is_in_stream);
  };
  if (use.first.empty() || (plan_.steps[use.first[0]].stage == step.stage && is_new_to(use.first))) {
    use.first.push_back(number);
  }
  if (!use.last.empty() && plan_.steps[use.last[0]].stage != step.stage) use.last.clear();
  std::erase_if(use.last, is_in_stream);
  use.last.push_back(number);
}

bool StorageUse::is_last(SlotIndex root, uint32_t step) const {
  return std::all_of(uses_[root].last.begin(), uses_[root].last.end(), [&](uint32_t other) {
    return other == step || (other < plan_.steps.size() && order_.precedes(other, step));
  });
}

// Steps of the stage of `step` that all later ones stand behind: on each stream the first from `step` on.
std::vector<uint32_t> StorageUse::first_steps_from(uint32_t step) const {
  const auto behind = std::upper_bound(plan_.stages.begin(), plan_.stages.end(), step,
                                       [](uint32_t number, const PlanStage& stage) { return number < stage.begin; });
  std::vector<uint32_t> first;
  for (const auto& stream : std::prev(behind)->streams) {
    const auto at = std::lower_bound(stream.begin(), stream.end(), step);
    if (at != stream.end()) first.push_back(*at);
  }
  if (first.empty()) first.push_back(step);  // one stream has them all
  return first;
}

bool StorageUse::is_over(const Occupancy& use, uint32_t step) const {
  const std::vector<uint32_t> first = first_steps_from(step);
  return std::all_of(use.last.begin(), use.last.end(), [&](uint32_t last) {
    return last < plan_.steps.size() &&
           std::all_of(first.begin(), first.end(), [&](uint32_t next) { return order_.precedes(last, next); });
  });
}

bool StorageUse::ends_before(const Occupancy& a, const Occupancy& b) const {
  return std::all_of(a.last.begin(), a.last.end(), [&](uint32_t last) {
    if (last == plan_.steps.size()) return false;
    return std::all_of(b.first.begin(), b.first.end(), [&](uint32_t first) { return order_.precedes(last, first); });
  });
}

}  // namespace autograph

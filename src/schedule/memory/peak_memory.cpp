#include "schedule/memory/peak_memory.h"

#include <algorithm>
#include <unordered_map>

namespace autograph {
namespace {

// Tensors in the arena and working memory, with the steps between which they are in use. Tensors that are written in
// place, one over the other, count as the first of them.
std::vector<AliveStorage> all_storage(const Plan& plan) {
  std::vector<AliveStorage> all;
  std::unordered_map<SlotIndex, size_t> entry_of;  // of a root
  std::vector<SlotIndex> roots;
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].place == Place::arena && plan.slots[s].root == s) roots.push_back(s);
  }
  std::stable_sort(roots.begin(), roots.end(),
                   [&](SlotIndex a, SlotIndex b) { return plan.slots[a].first_step < plan.slots[b].first_step; });
  for (const SlotIndex s : roots) {
    const Slot& slot = plan.slots[s];
    const bool is_written = slot.first_step < plan.steps.size();
    const Step* writer = is_written ? &plan.steps[slot.first_step] : nullptr;
    const bool in_place = writer && writer->in_place >= 0 && !writer->outputs.empty() && writer->outputs[0] == s;
    if (in_place) {
      const SlotIndex taken = plan.slots[writer->inputs[static_cast<size_t>(writer->in_place)]].root;
      const auto entry = entry_of.find(taken);
      if (entry != entry_of.end()) {
        all[entry->second].last_step = slot.last_step;
        entry_of[s] = entry->second;
        continue;
      }
    }
    entry_of[s] = all.size();
    all.push_back({s, slot.first_step, slot.last_step, slot.bytes});
  }
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    const size_t scratch = plan.steps[number].scratch_bytes;
    if (scratch > 0) all.push_back({kNoSlot, number, number, scratch});
  }
  return all;
}

uint32_t step_of_peak(const Plan& plan, const std::vector<AliveStorage>& all) {
  std::vector<int64_t> change(plan.steps.size() + 2);
  for (const AliveStorage& storage : all) {
    change[storage.step] += static_cast<int64_t>(storage.bytes);
    change[storage.last_step + 1] -= static_cast<int64_t>(storage.bytes);
  }
  int64_t now = 0, most = -1;
  uint32_t step = 0;
  for (uint32_t number = 0; number <= plan.steps.size(); ++number) {
    now += change[number];
    if (now > most) std::tie(most, step) = std::pair(now, number);
  }
  return step;
}

}  // namespace

std::vector<AliveStorage> storage_at_peak(const Plan& plan) {
  std::vector<AliveStorage> all = all_storage(plan);
  const uint32_t step = step_of_peak(plan, all);
  std::erase_if(all, [&](const AliveStorage& storage) { return storage.step > step || storage.last_step < step; });
  std::stable_sort(all.begin(), all.end(),
                   [](const AliveStorage& a, const AliveStorage& b) { return a.bytes > b.bytes; });
  return all;
}

}  // namespace autograph

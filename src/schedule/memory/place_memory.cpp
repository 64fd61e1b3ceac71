// Lifetimes of the slots of a plan, storage shared in place, and arena offsets.
#include <algorithm>
#include <functional>
#include <optional>

#include "base/aligned_size.h"
#include "schedule/memory/storage_use.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

// Sets first_step and last_step of every root, and what heap slots may be dropped after which step.
void find_lifetimes(Plan& plan) {
  const auto end = static_cast<uint32_t>(plan.steps.size());
  const auto read = [&](SlotIndex s, uint32_t step) {
    if (s == kNoSlot) return;
    Slot& root = plan.slots[plan.slots[s].root];
    root.last_step = std::max(root.last_step, step);
  };
  for (Slot& slot : plan.slots) {
    slot.first_step = end;
    slot.last_step = 0;
  }
  for (uint32_t number = 0; number < end; ++number) {
    Step& step = plan.steps[number];
    step.last_reads.clear();
    for (const SlotIndex s : step.inputs) read(s, number);
    for (const SlotIndex s : step.outputs) {
      Slot& root = plan.slots[plan.slots[s].root];
      root.first_step = std::min(root.first_step, number);
      root.last_step = std::max(root.last_step, number);
    }
  }
  for (const PlanOutput& output : plan.outputs) read(output.slot, end);
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    Slot& slot = plan.slots[s];
    slot.first_step = std::min(slot.first_step, slot.last_step);  // of what no step writes
    if (slot.place == Place::heap && slot.last_step < end) plan.steps[slot.last_step].last_reads.push_back(s);
  }
}

// Does nothing but step `number` need the storage of a root slot any more when the step begins?
using IsLastUse = std::function<bool(SlotIndex root, uint32_t number)>;

// May output 0 of step `number` take the storage of its input `index`? Only when nothing needs that storage any more.
bool can_run_in_place(const Plan& plan, uint32_t number, uint32_t index, const IsLastUse& is_last_use) {
  const Step& step = plan.steps[number];
  if (index >= step.inputs.size() || step.inputs[index] == kNoSlot || step.outputs.size() != 1) return false;
  const Slot& in = plan.slots[step.inputs[index]];
  const Slot& out = plan.slots[step.outputs[0]];
  if (in.place != Place::arena || out.place != Place::arena || out.root != step.outputs[0]) return false;
  if (in.root_offset != 0 || plan.slots[in.root].bytes != in.bytes) return false;
  if (in.bytes != out.bytes || in.type.dtype() != out.type.dtype() || !is_last_use(in.root, number)) return false;
  for (size_t k = 0; k < step.inputs.size(); ++k) {
    const SlotIndex other = step.inputs[k];
    if (k == index || other == kNoSlot) continue;
    if (plan.slots[other].root == in.root) return false;
  }
  return true;
}

// Roots that share storage in place form a group, named by its first root.
std::vector<SlotIndex> share_storage(Plan& plan, const IsLastUse& is_last_use) {
  std::vector<SlotIndex> group(plan.slots.size());
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) group[s] = plan.slots[s].root;
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    Step& step = plan.steps[number];
    if (!step.outputs.empty() && plan.slots[step.outputs[0]].place == Place::arena) step.in_place = -1;
    for (const uint32_t index : step.in_place_inputs) {
      if (!can_run_in_place(plan, number, index, is_last_use)) continue;
      step.in_place = static_cast<int>(index);
      group[step.outputs[0]] = group[plan.slots[step.inputs[index]].root];
      break;
    }
  }
  return group;
}

class MemoryPlacer {
 public:
  explicit MemoryPlacer(Plan& plan) : plan_(plan), lifetime_of_(plan.slots.size(), 0) {
    find_lifetimes(plan_);
    if (!plan_.stages.empty()) use_.emplace(plan_);
  }

  void run() {
    const std::vector<SlotIndex> group = share_storage(plan_, [this](SlotIndex root, uint32_t number) {
      return use_ ? use_->is_last(root, number) : plan_.slots[root].last_step == number;
    });
    add_tensors(group);
    const size_t first_scratch = lifetimes_.size();
    for (uint32_t number = 0; number < plan_.steps.size(); ++number) {
      lifetimes_.push_back({plan_.steps[number].scratch_bytes, number, number});
      plan_.sum_of_tensors_bytes += aligned_size(plan_.steps[number].scratch_bytes);
      if (use_) uses_.push_back({{number}, {number}});
    }
    const MemoryPlan memory =
        use_ ? plan_memory(
                   lifetimes_, [this](size_t a, size_t b) { return use_->alive_together(uses_[a], uses_[b]); },
                   [this](size_t a, uint32_t step) { return use_->is_over(uses_[a], step); })
             : plan_memory(lifetimes_);
    plan_.arena_bytes = memory.peak_bytes;
    plan_.lower_bound_bytes = memory.lower_bound_bytes;
    for (Slot& slot : plan_.slots) {
      if (slot.place == Place::arena) slot.offset = memory.offsets[lifetime_of_[slot.root]] + slot.root_offset;
    }
    for (size_t number = 0; number < plan_.steps.size(); ++number) {
      plan_.steps[number].scratch_offset = memory.offsets[first_scratch + number];
    }
  }

 private:
  // One lifetime for each group of roots.
  void add_tensors(const std::vector<SlotIndex>& group) {
    plan_.sum_of_tensors_bytes = 0;
    std::vector<SlotIndex> roots;
    for (SlotIndex s = 0; s < plan_.slots.size(); ++s) {
      if (plan_.slots[s].place == Place::arena && plan_.slots[s].root == s) roots.push_back(s);
    }
    // The first of a group comes first in time: slots that reorders added have the highest numbers.
    std::stable_sort(roots.begin(), roots.end(),
                     [&](SlotIndex a, SlotIndex b) { return plan_.slots[a].first_step < plan_.slots[b].first_step; });
    for (const SlotIndex s : roots) {
      const Slot& slot = plan_.slots[s];
      plan_.sum_of_tensors_bytes += aligned_size(slot.bytes);
      if (group[s] == s) {
        lifetime_of_[s] = lifetimes_.size();
        lifetimes_.push_back({slot.bytes, slot.first_step, slot.last_step});
        if (use_) uses_.push_back(use_->of(s));
      } else {
        lifetime_of_[s] = lifetime_of_[group[s]];
        lifetimes_[lifetime_of_[s]].last_step = slot.last_step;
        if (use_) uses_[lifetime_of_[s]].last = use_->of(s).last;
      }
    }
  }

  Plan& plan_;
  std::optional<StorageUse> use_;  // with several streams
  std::vector<Lifetime> lifetimes_;
  std::vector<Occupancy> uses_;      // parallel to lifetimes_, with several streams
  std::vector<size_t> lifetime_of_;  // by root slot
};

}  // namespace

void place_memory(Plan& plan) { MemoryPlacer(plan).run(); }

}  // namespace autograph

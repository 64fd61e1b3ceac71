// Outputs that take the memory of an input: the new value of a state, and what the caller donates.
//
// An output may be written straight over the input when everything that reads the input is over before the first write,
// in every order in which the streams can run. Where that is not so it is made in the arena and copied when all steps
// are over. Such copies may write over what another one reads (two states that change places): those are taken aside.
#include <algorithm>
#include <optional>

#include "schedule/plan.h"
#include "schedule/step_order.h"

namespace autograph {
namespace {

class SharedPlacer {
 public:
  explicit SharedPlacer(Plan& plan) : plan_(plan) {
    if (!plan.stages.empty()) order_.emplace(plan);
    // Values made while running may be other names for inputs.
    is_fixed_ = std::all_of(plan.steps.begin(), plan.steps.end(),
                            [](const Step& step) { return step.kind == StepKind::fixed; });
  }

  void run() {
    for (const SharedMemory& pair : plan_.shared) place(pair);
    for (PlanOutput& output : plan_.outputs) output.staged = !output.direct && is_overwritten(output.slot);
  }

 private:
  bool precedes(uint32_t a, uint32_t b) const { return order_ ? order_->precedes(a, b) : a < b; }

  void place(const SharedMemory& pair) {
    PlanOutput& output = plan_.outputs[pair.output];
    const SlotIndex root = plan_.slots[output.slot].root;
    if (!output.direct || may_overwrite(plan_.slots[plan_.inputs[pair.input]].root, root)) return;
    for (PlanOutput& other : plan_.outputs) {
      if (plan_.slots[other.slot].root == root) other.direct = false;
    }
    for (Slot& slot : plan_.slots) {
      if (slot.root == root) slot.place = Place::arena;
    }
  }

  // May all writes to the storage of `target` go to that of `input`?
  bool may_overwrite(SlotIndex input, SlotIndex target) {
    if (!is_fixed_) return false;
    const auto is_read_at_end = [&](const PlanOutput& output) { return plan_.slots[output.slot].root == input; };
    if (std::any_of(plan_.outputs.begin(), plan_.outputs.end(), is_read_at_end)) return false;
    std::optional<std::pair<uint32_t, int>> in_place;
    for (uint32_t writer = 0; writer < plan_.steps.size(); ++writer) {
      if (!touches(plan_.steps[writer].outputs, target)) continue;
      for (uint32_t reader = 0; reader < plan_.steps.size(); ++reader) {
        if (!touches(plan_.steps[reader].inputs, input)) continue;
        if (reader != writer && precedes(reader, writer)) continue;
        const int index = reader == writer ? find_in_place(plan_.steps[writer], input, target) : -1;
        if (index < 0) return false;
        in_place = {writer, index};
      }
    }
    if (in_place) plan_.steps[in_place->first].in_place = in_place->second;
    return true;
  }

  bool touches(const std::vector<SlotIndex>& slots, SlotIndex root) const {
    return std::any_of(slots.begin(), slots.end(),
                       [&](SlotIndex s) { return s != kNoSlot && plan_.slots[s].root == root; });
  }

  // The input over which the kernel of a step writes all of `target`, though it reads it; -1: there is none.
  int find_in_place(const Step& step, SlotIndex input, SlotIndex target) const {
    if (step.outputs.size() != 1 || step.outputs[0] != target) return -1;
    const auto reads = [&](SlotIndex s) { return s != kNoSlot && plan_.slots[s].root == input; };
    if (std::count_if(step.inputs.begin(), step.inputs.end(), reads) != 1) return -1;
    for (const uint32_t index : step.in_place_inputs) {
      if (index >= step.inputs.size() || !reads(step.inputs[index])) continue;
      const Slot& in = plan_.slots[step.inputs[index]];
      const Slot& out = plan_.slots[target];
      if (in.bytes == out.bytes && in.type.dtype() == out.type.dtype()) return static_cast<int>(index);
    }
    return -1;
  }

  // Does a copy at the end write over the input in which a slot lies?
  bool is_overwritten(SlotIndex s) const {
    const Slot& root = plan_.slots[plan_.slots[s].root];
    return root.place == Place::input && std::any_of(plan_.shared.begin(), plan_.shared.end(),
                                                     [&](const auto& pair) { return pair.input == root.index; });
  }

  Plan& plan_;
  std::optional<StepOrder> order_;  // with several streams
  bool is_fixed_ = false;
};

}  // namespace

void place_shared(Plan& plan) { SharedPlacer(plan).run(); }

}  // namespace autograph

// States that wait in the memory of the host, as steps: a copy to the device in front of the first step that reads one,
// a copy of its new value back behind the step that makes it.
#include <algorithm>
#include <optional>

#include "schedule/plan.h"

namespace autograph {
namespace {

class TransferInserter {
 public:
  explicit TransferInserter(Plan& plan) : plan_(plan), before_(plan.steps.size()), behind_(plan.steps.size()) {}

  void add(uint32_t input) {
    const SlotIndex state = plan_.inputs[input];
    const std::optional<size_t> reader = first_reader(state);
    if (reader) bring(input, state, *reader);
    for (const SharedMemory& pair : plan_.shared) {
      if (pair.input == input) take_back(pair.output, state, reader);
    }
  }

  void finish() {
    std::vector<Step> steps;
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      for (Step& step : before_[n]) steps.push_back(std::move(step));
      steps.push_back(std::move(plan_.steps[n]));
      for (Step& step : behind_[n]) steps.push_back(std::move(step));
    }
    plan_.steps = std::move(steps);
  }

 private:
  std::optional<size_t> first_reader(SlotIndex state) const {
    const auto reads = [&](SlotIndex s) { return s != kNoSlot && plan_.slots[s].root == state; };
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      if (std::any_of(plan_.steps[n].inputs.begin(), plan_.steps[n].inputs.end(), reads)) return n;
    }
    return std::nullopt;
  }

  size_t writer_of(SlotIndex slot) const {
    const SlotIndex source = plan_.slots[slot].source;
    const auto writes = [&](const Step& step) {
      return std::find(step.outputs.begin(), step.outputs.end(), source) != step.outputs.end();
    };
    return static_cast<size_t>(std::find_if(plan_.steps.begin(), plan_.steps.end(), writes) - plan_.steps.begin());
  }

  SlotIndex new_slot(SlotIndex like, Place place, uint32_t index) {
    const auto slot = static_cast<SlotIndex>(plan_.slots.size());
    Slot copy;
    copy.value = plan_.slots[like].value;
    copy.type = plan_.slots[like].type;
    copy.bytes = plan_.slots[like].bytes;
    copy.place = place;
    copy.index = index;
    copy.root = slot;
    copy.source = slot;
    plan_.slots.push_back(std::move(copy));
    return slot;
  }

  static Step copy_beside(const Step& neighbour, std::string_view kernel, SlotIndex from, SlotIndex to) {
    Step step;
    step.kernel = kernel;
    step.inputs = {from};
    step.outputs = {to};
    step.stage = neighbour.stage;
    step.stream = neighbour.stream;
    step.threads = neighbour.threads;
    return step;
  }

  void move_to_arena(SlotIndex root) {
    for (Slot& slot : plan_.slots) {
      if (slot.root != root) continue;
      slot.place = Place::arena;
      slot.index = 0;
    }
  }

  // Readers and views keep their slot, which is written in the arena now.
  void bring(uint32_t input, SlotIndex state, size_t reader) {
    plan_.inputs[input] = new_slot(state, Place::input, input);
    move_to_arena(state);
    before_[reader].push_back(copy_beside(plan_.steps[reader], kToDevice, plan_.inputs[input], state));
  }

  // Behind the copy to the device, too: the new value may be written over the old one then.
  void take_back(uint32_t number, SlotIndex state, std::optional<size_t> reader) {
    PlanOutput& output = plan_.outputs[number];
    const SlotIndex made = output.slot;
    const size_t at = std::max(writer_of(made), reader.value_or(0));
    if (output.direct) move_to_arena(plan_.slots[made].root);
    output = {new_slot(made, Place::output, number), true};
    Step& step = behind_[at].emplace_back(copy_beside(plan_.steps[at], kToHost, made, output.slot));
    step.after = plan_.slots[made].after;
    if (reader) step.after.push_back(state);
  }

  Plan& plan_;
  std::vector<std::vector<Step>> before_;  // by step
  std::vector<std::vector<Step>> behind_;
};

}  // namespace

void insert_transfers(Plan& plan, std::span<const uint32_t> inputs) {
  TransferInserter inserter(plan);
  for (const uint32_t input : inputs) inserter.add(input);
  inserter.finish();
}

}  // namespace autograph

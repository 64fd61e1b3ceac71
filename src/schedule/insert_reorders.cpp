// Layout changes as steps of their own.
#include <map>
#include <utility>

#include "schedule/plan.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

Layout layout_at(const std::vector<Layout>& layouts, size_t k) {
  return k < layouts.size() ? layouts[k] : Layout::row_major;
}

class ReorderInserter {
 public:
  ReorderInserter(Plan& plan, std::vector<StepLayouts>& layouts)
      : plan_(plan), layouts_(layouts), num_old_(plan.slots.size()) {}

  void run() {
    set_written_layouts();
    find_row_major_needs();
    std::vector<Step> old_steps = std::exchange(plan_.steps, {});
    std::vector<StepLayouts> old_layouts = std::exchange(layouts_, {});
    for (size_t n = 0; n < old_steps.size(); ++n) {
      Step& step = old_steps[n];
      for (size_t k = 0; k < step.inputs.size(); ++k) {
        if (step.inputs[k] == kNoSlot) continue;
        step.inputs[k] = slot_in(step.inputs[k], layout_at(old_layouts[n].inputs, k), step);
      }
      plan_.steps.push_back(step);
      layouts_.push_back(std::move(old_layouts[n]));
      // Views and what leaves the run are read under any name and at any time: they get their copy at once.
      for (const SlotIndex s : step.outputs) {
        if (needs_row_major_[s]) adopt(s, slot_in(s, Layout::row_major, step));
      }
    }
  }

 private:
  void set_written_layouts() {
    for (size_t n = 0; n < plan_.steps.size(); ++n) {
      for (size_t k = 0; k < plan_.steps[n].outputs.size(); ++k) {
        Slot& slot = plan_.slots[plan_.steps[n].outputs[k]];
        const Layout layout = layout_at(layouts_[n].outputs, k);
        if (layout == Layout::row_major || is_same_order(layout, Layout::row_major, slot.type.shape().static_dims())) {
          continue;
        }
        slot.layout = layout;
        slot.bytes = size_of(slot.type, layout);
        if (slot.place == Place::output) slot.place = Place::arena;
      }
    }
  }

  void find_row_major_needs() {
    needs_row_major_.assign(num_old_, false);
    const auto need = [&](SlotIndex s) {
      if (plan_.slots[s].layout != Layout::row_major) needs_row_major_[s] = true;
    };
    views_of_.resize(num_old_);
    for (SlotIndex s = 0; s < num_old_; ++s) {
      const SlotIndex root = plan_.slots[s].root;
      if (root == s) continue;
      need(root);
      if (root < num_old_) views_of_[root].push_back(s);
    }
    for (const PlanOutput& output : plan_.outputs) need(plan_.slots[output.slot].root);
  }

  // The slot that has the elements of `s` in `wanted`; adds a reorder to the stream of `neighbour` when there is none
  // yet.
  SlotIndex slot_in(SlotIndex s, Layout wanted, const Step& neighbour) {
    const Slot& slot = plan_.slots[s];
    if (slot.layout == wanted || is_same_order(slot.layout, wanted, slot.type.shape().static_dims())) return s;
    if (const auto found = copies_.find({s, wanted}); found != copies_.end()) return found->second;
    Slot copy;
    copy.value = slot.value;
    copy.type = slot.type;
    copy.place = Place::arena;
    copy.layout = wanted;
    copy.bytes = size_of(slot.type, wanted);
    copy.root = static_cast<SlotIndex>(plan_.slots.size());
    copy.source = copy.root;
    Step step;
    step.stage = neighbour.stage;
    step.stream = neighbour.stream;
    step.threads = neighbour.threads;
    step.inputs = {s};
    step.outputs = {copy.root};
    layouts_.push_back({{slot.layout}, {wanted}});
    plan_.slots.push_back(copy);
    plan_.steps.push_back(std::move(step));
    copies_[{s, wanted}] = copy.root;
    return copy.root;
  }

  // Hands the views of `s` and its part as an output of the run to its row-major copy.
  void adopt(SlotIndex s, SlotIndex copy) {
    for (const SlotIndex v : views_of_[s]) {
      plan_.slots[v].root = copy;
      plan_.slots[v].source = copy;
    }
    for (PlanOutput& output : plan_.outputs) {
      if (output.slot == s) output.slot = copy;
      if (output.direct && plan_.slots[output.slot].root == copy) plan_.slots[copy].place = Place::output;
    }
    plan_.slots[copy].index = plan_.slots[s].index;
    for (const SlotIndex v : views_of_[s]) plan_.slots[v].place = plan_.slots[copy].place;
  }

  Plan& plan_;
  std::vector<StepLayouts>& layouts_;
  const size_t num_old_;
  std::vector<bool> needs_row_major_;                         // by old slot: it is viewed or leaves the run
  std::vector<std::vector<SlotIndex>> views_of_;              // by old slot: those whose storage it is
  std::map<std::pair<SlotIndex, Layout>, SlotIndex> copies_;  // by slot and layout
};

}  // namespace

void insert_reorders(Plan& plan, std::vector<StepLayouts>& layouts) { ReorderInserter(plan, layouts).run(); }

}  // namespace autograph

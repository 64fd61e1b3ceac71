// From a typed graph to steps in one order, and from steps to arena offsets.
//
// The order is that of insertion when it is topological (exporters write files in an order that keeps few tensors
// alive), else the graph's topological order.
#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "schedule/plan.h"

namespace autograph {
namespace {

// Is the type a plain tensor whose size is known: something that can lie in the arena?
bool is_plain(const Type& type) { return type.is_static() && type.dtype() != DType::string; }

class Planner {
 public:
  Planner(const Graph& graph, const KnownValues& known)
      : graph_(graph), known_(known), slot_of_(graph.value_capacity(), kNoSlot) {}

  Plan run() {
    mark_needed();
    for (size_t i = 0; i < graph_.inputs().size(); ++i) add_input(i);
    for (const NodeId id : order()) {
      if (needed_[id.index]) add_node(id);
    }
    add_outputs();
    find_last_reads();
    return std::move(plan_);
  }

 private:
  bool is_known(ValueId id) const { return graph_.value(id).is_constant() || known_.count(id.index) > 0; }

  // Marks the nodes that some output depends on and whose values are not known already.
  void mark_needed() {
    needed_.assign(graph_.node_capacity(), 0);
    std::vector<ValueId> work(graph_.outputs());
    while (!work.empty()) {
      const ValueId id = work.back();
      work.pop_back();
      if (!id.is_valid() || is_known(id)) continue;
      const NodeId producer = graph_.value(id).producer();
      if (!producer.is_valid() || needed_[producer.index]) continue;
      needed_[producer.index] = 1;
      const auto& inputs = graph_.node(producer).inputs();
      work.insert(work.end(), inputs.begin(), inputs.end());
    }
  }

  std::vector<NodeId> order() const {
    const std::vector<NodeId> nodes = graph_.nodes();
    for (const NodeId id : nodes) {
      for (const ValueId input : graph_.node(id).inputs()) {
        if (!input.is_valid()) continue;
        const NodeId producer = graph_.value(input).producer();
        if (producer.is_valid() && producer.index > id.index) return graph_.topological_order();
      }
    }
    return nodes;
  }

  SlotIndex new_slot(ValueId value, Place place, uint32_t index) {
    const auto slot = static_cast<SlotIndex>(plan_.slots.size());
    Slot& s = plan_.slots.emplace_back();
    s.value = value;
    s.type = graph_.type(value);
    s.place = place;
    s.index = index;
    s.root = slot;
    s.bytes = is_plain(s.type) ? size_of(s.type) : 0;
    slot_of_[value.index] = slot;
    return slot;
  }

  void add_input(size_t i) {
    const ValueId value = graph_.inputs()[i];
    plan_.inputs.push_back(new_slot(value, Place::input, static_cast<uint32_t>(i)));
  }

  // The slot of a value that is read; makes one for a constant or known value on its first use.
  SlotIndex slot_for(ValueId value) {
    if (!value.is_valid()) return kNoSlot;
    if (slot_of_[value.index] != kNoSlot) return slot_of_[value.index];
    AG_CHECK(is_known(value), "value {} is read before it is made", value.index);
    const SlotIndex slot = new_slot(value, Place::weight, static_cast<uint32_t>(plan_.weights.size()));
    const Value& v = graph_.value(value);
    plan_.weights.push_back(v.is_constant() ? v.constant() : known_.at(value.index));
    return slot;
  }

  bool is_fixed_input(SlotIndex slot) const {
    return slot == kNoSlot || (is_plain(plan_.slots[slot].type) && plan_.slots[slot].place != Place::heap);
  }

  bool is_fixed(const Node& node, const std::vector<SlotIndex>& inputs) const {
    return std::all_of(inputs.begin(), inputs.end(), [&](SlotIndex s) { return is_fixed_input(s); }) &&
           std::all_of(node.outputs().begin(), node.outputs().end(),
                       [&](ValueId v) { return is_plain(graph_.type(v)); });
  }

  // Can output 0 be another name for the bytes of input 0?
  bool is_view(const Node& node, const std::vector<SlotIndex>& inputs) const {
    if (!node.op().traits.view || node.outputs().size() != 1 || inputs.empty() || inputs[0] == kNoSlot) return false;
    const Type& out = graph_.type(node.output(0));
    const Slot& in = plan_.slots[inputs[0]];
    return out.dtype() == in.type.dtype() && size_of(out) == in.bytes;
  }

  void read(SlotIndex slot, uint32_t step) {
    if (slot == kNoSlot) return;
    Slot& root = plan_.slots[plan_.slots[slot].root];
    root.last_step = std::max(root.last_step, step);
  }

  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    std::vector<SlotIndex> inputs;
    for (const ValueId input : node.inputs()) inputs.push_back(slot_for(input));
    const bool fixed = !node.op().evaluate && is_fixed(node, inputs);
    if (fixed && is_view(node, inputs)) {
      const SlotIndex root = plan_.slots[inputs[0]].root;
      const SlotIndex slot = new_slot(node.output(0), plan_.slots[root].place, plan_.slots[root].index);
      plan_.slots[slot].root = root;
      return;
    }
    const auto number = static_cast<uint32_t>(plan_.steps.size());
    Step step;
    step.node = id;
    step.kind = node.op().evaluate ? StepKind::evaluate : fixed ? StepKind::fixed : StepKind::dynamic;
    for (const SlotIndex slot : inputs) read(slot, number);
    for (const ValueId output : node.outputs()) {
      const SlotIndex slot = new_slot(output, fixed ? Place::arena : Place::heap, 0);
      plan_.slots[slot].first_step = plan_.slots[slot].last_step = number;
      if (!fixed) plan_.slots[slot].bytes = 0;
      step.outputs.push_back(slot);
    }
    step.inputs = std::move(inputs);
    plan_.steps.push_back(std::move(step));
  }

  void add_outputs() {
    const auto end = static_cast<uint32_t>(plan_.steps.size());
    for (size_t k = 0; k < graph_.outputs().size(); ++k) {
      const SlotIndex slot = slot_for(graph_.outputs()[k]);
      Slot& root = plan_.slots[plan_.slots[slot].root];
      const bool direct = root.place == Place::arena;
      if (direct) {
        root.place = Place::output;
        root.index = static_cast<uint32_t>(k);
      }
      read(slot, end);
      plan_.outputs.push_back({slot, direct});
    }
    for (Slot& slot : plan_.slots) {
      slot.place = plan_.slots[slot.root].place;
      slot.index = plan_.slots[slot.root].index;
    }
  }

  void find_last_reads() {
    const size_t end = plan_.steps.size();
    for (SlotIndex s = 0; s < plan_.slots.size(); ++s) {
      const Slot& slot = plan_.slots[s];
      if (slot.place == Place::heap && slot.last_step < end) plan_.steps[slot.last_step].last_reads.push_back(s);
    }
  }

  const Graph& graph_;
  const KnownValues& known_;
  std::vector<SlotIndex> slot_of_;
  std::vector<uint8_t> needed_;
  Plan plan_;
};

// May output 0 of step `number` take the storage of input 0? Only when nothing needs that storage any more.
bool can_run_in_place(const Plan& plan, const Step& step, uint32_t number, const std::vector<uint32_t>& group_end) {
  if (!step.in_place || step.inputs.empty() || step.inputs[0] == kNoSlot || step.outputs.size() != 1) return false;
  const Slot& in = plan.slots[step.inputs[0]];
  const Slot& out = plan.slots[step.outputs[0]];
  if (in.place != Place::arena || out.place != Place::arena || out.root != step.outputs[0]) return false;
  if (in.bytes != out.bytes || in.type.dtype() != out.type.dtype() || group_end[in.root] != number) return false;
  return std::all_of(step.inputs.begin() + 1, step.inputs.end(), [&](SlotIndex other) {
    return other == kNoSlot || other == step.inputs[0] || plan.slots[other].root != in.root;
  });
}

}  // namespace

Plan plan_sequential(const Graph& graph, const KnownValues& known) { return Planner(graph, known).run(); }

void place_memory(Plan& plan) {
  // Roots that share storage in place form a group, named by its first root.
  std::vector<SlotIndex> group(plan.slots.size());
  std::vector<uint32_t> end(plan.slots.size(), 0);
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    group[s] = plan.slots[s].root;
    end[s] = plan.slots[s].last_step;
  }
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    Step& step = plan.steps[number];
    step.in_place = can_run_in_place(plan, step, number, end);
    if (step.in_place) group[step.outputs[0]] = group[plan.slots[step.inputs[0]].root];
  }

  std::vector<Lifetime> lifetimes;
  std::vector<size_t> lifetime_of(plan.slots.size(), 0);
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.place != Place::arena || slot.root != s) continue;
    plan.sum_of_tensors_bytes += aligned_size(slot.bytes);
    if (group[s] == s) {
      lifetime_of[s] = lifetimes.size();
      lifetimes.push_back({slot.bytes, slot.first_step, slot.last_step});
    } else {
      lifetime_of[s] = lifetime_of[group[s]];
      lifetimes[lifetime_of[s]].last_step = slot.last_step;
    }
  }
  const size_t first_scratch = lifetimes.size();
  for (uint32_t number = 0; number < plan.steps.size(); ++number) {
    lifetimes.push_back({plan.steps[number].scratch_bytes, number, number});
  }

  const MemoryPlan memory = plan_memory(lifetimes);
  plan.arena_bytes = memory.peak_bytes;
  plan.lower_bound_bytes = memory.lower_bound_bytes;
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    Slot& slot = plan.slots[s];
    if (slot.place == Place::arena) slot.offset = memory.offsets[lifetime_of[slot.root]];
  }
  for (size_t number = 0; number < plan.steps.size(); ++number) {
    plan.steps[number].scratch_offset = memory.offsets[first_scratch + number];
  }
}

}  // namespace autograph

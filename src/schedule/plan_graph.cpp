// From a typed graph to steps in one order, with the stages and streams of a schedule where there is one.
#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "graph/nodes_behind.h"
#include "schedule/node_order.h"
#include "schedule/plan.h"
#include "schedule/schedule_order.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

class Planner {
 public:
  Planner(const Graph& graph, const KnownValues& known, const PlannedNodes& planned)
      : graph_(graph), known_(known), planned_(planned), slot_of_(graph.value_capacity(), kNoSlot) {}

  Plan run() {
    std::vector<ScheduledNode> nodes;
    for (const NodeId id : sequential_order(graph_, known_)) nodes.push_back({id, 0, 0});
    return run(nodes);
  }

  Plan run(const std::vector<ScheduledNode>& order) {
    // What some output depends on and is not known already.
    needed_ = nodes_behind(graph_, graph_.roots(), [&](ValueId id) { return is_known(id); });
    for (const ValueId v : graph_.inputs()) add_input(v);
    for (const ValueId v : graph_.states()) add_input(v);
    for (const ScheduledNode& scheduled : order) {
      if (needed_[scheduled.node.index]) add_node(scheduled);
    }
    add_outputs();
    return std::move(plan_);
  }

 private:
  bool is_known(ValueId id) const { return graph_.value(id).is_constant() || known_.count(id.index) > 0; }

  SlotIndex new_slot(ValueId value, Place place, uint32_t index) {
    const auto slot = static_cast<SlotIndex>(plan_.slots.size());
    Slot& s = plan_.slots.emplace_back();
    s.value = value;
    s.type = graph_.type(value);
    s.place = place;
    s.index = index;
    s.root = slot;
    s.source = slot;
    s.bytes = is_plain(s.type) ? size_of(s.type) : 0;
    slot_of_[value.index] = slot;
    return slot;
  }

  void add_input(ValueId value) {
    plan_.inputs.push_back(new_slot(value, Place::input, static_cast<uint32_t>(plan_.inputs.size())));
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

  void add_view(ValueId value, SlotIndex of, std::vector<SlotIndex> after) {
    const SlotIndex root = plan_.slots[of].root;
    const SlotIndex slot = new_slot(value, plan_.slots[root].place, plan_.slots[root].index);
    plan_.slots[slot].root = root;
    plan_.slots[slot].source = plan_.slots[of].source;
    plan_.slots[slot].after = std::move(after);
  }

  // All slots behind which a reader of these stands, and they themselves where it is a barrier that reads them.
  std::vector<SlotIndex> join_after(const std::vector<SlotIndex>& slots, bool with_slots) const {
    std::vector<SlotIndex> after;
    for (const SlotIndex s : slots) {
      if (s == kNoSlot) continue;
      if (with_slots) after.push_back(plan_.slots[s].source);
      after.insert(after.end(), plan_.slots[s].after.begin(), plan_.slots[s].after.end());
    }
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    return after;
  }

  void add_node(const ScheduledNode& scheduled) {
    const Node& node = graph_.node(scheduled.node);
    std::vector<SlotIndex> inputs;
    for (const ValueId input : node.inputs()) inputs.push_back(slot_for(input));
    const bool has_kernel = !node.op().evaluate || planned_.contains(scheduled.node.index);
    const bool fixed = has_kernel && is_fixed(node, inputs);
    if (fixed && is_view(node, inputs)) {
      add_view(node.output(0), inputs[0], plan_.slots[inputs[0]].after);
      return;
    }
    if (fixed && node.op().traits.barrier) {
      const std::vector<SlotIndex> after = join_after(inputs, true);
      for (size_t k = 0; k < inputs.size(); ++k) add_view(node.output(k), inputs[k], after);
      return;
    }
    Step step;
    step.after = join_after(inputs, false);
    step.node = scheduled.node;
    step.stage = scheduled.stage;
    step.stream = scheduled.stream;
    step.kind = fixed ? StepKind::fixed : node.op().evaluate ? StepKind::evaluate : StepKind::dynamic;
    for (const ValueId output : node.outputs()) {
      const SlotIndex slot = new_slot(output, fixed ? Place::arena : Place::heap, 0);
      if (!fixed) plan_.slots[slot].bytes = 0;
      step.outputs.push_back(slot);
    }
    step.inputs = std::move(inputs);
    plan_.steps.push_back(std::move(step));
  }

  void add_outputs() {
    std::vector<ValueId> outputs = graph_.outputs();
    for (const StateUpdate& update : graph_.updates()) {
      const auto state = std::find(graph_.states().begin(), graph_.states().end(), update.state);
      const auto input = graph_.inputs().size() + static_cast<size_t>(state - graph_.states().begin());
      plan_.shared.push_back({static_cast<uint32_t>(input), static_cast<uint32_t>(outputs.size())});
      outputs.push_back(update.value);
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
      const SlotIndex slot = slot_for(outputs[k]);
      Slot& root = plan_.slots[plan_.slots[slot].root];
      const bool direct = root.place == Place::arena;
      if (direct) {
        root.place = Place::output;
        root.index = static_cast<uint32_t>(k);
      }
      plan_.outputs.push_back({slot, direct});
    }
    for (Slot& slot : plan_.slots) {
      slot.place = plan_.slots[slot.root].place;
      slot.index = plan_.slots[slot.root].index;
    }
  }

  const Graph& graph_;
  const KnownValues& known_;
  const PlannedNodes& planned_;
  std::vector<SlotIndex> slot_of_;
  std::vector<uint8_t> needed_;
  Plan plan_;
};

// Makes a stage of its own of every step whose shapes are only known while running: what it allocates is not planned,
// and nested graphs take all threads. Returns, by new stage, the number of the one that it comes from.
std::vector<uint32_t> set_dynamic_steps_apart(Plan& plan, const Graph& graph) {
  std::vector<uint32_t> origin;
  bool was_dynamic = false;
  for (Step& step : plan.steps) {
    const bool is_dynamic = step.kind != StepKind::fixed || graph.node(step.node).op().evaluate;
    if (origin.empty() || origin.back() != step.stage || is_dynamic || was_dynamic) origin.push_back(step.stage);
    step.stage = static_cast<uint32_t>(origin.size() - 1);
    was_dynamic = is_dynamic;
  }
  return origin;
}

// Gives the steps of each stage with more than one stream their threads.
void assign_threads(Plan& plan, const Graph& graph, const Schedule& schedule, int threads) {
  const std::vector<uint32_t> origin = set_dynamic_steps_apart(plan, graph);
  std::vector<std::vector<uint8_t>> has_steps;
  for (const uint32_t stage : origin) has_steps.emplace_back(schedule.stages[stage].streams.size(), 0);
  for (const Step& step : plan.steps) has_steps[step.stage][step.stream] = 1;
  for (Step& step : plan.steps) {
    const auto width = static_cast<int>(std::count(has_steps[step.stage].begin(), has_steps[step.stage].end(), 1));
    const int wanted = schedule.stages[origin[step.stage]].threads;
    if (width == 1) {
      step.stream = 0;
    } else {
      step.threads = wanted > 0 ? std::min(wanted, threads) : std::max(threads / width, 1);
    }
  }
}

}  // namespace

Plan plan_sequential(const Graph& graph, const KnownValues& known, const PlannedNodes& planned) {
  return Planner(graph, known, planned).run();
}

Plan plan_scheduled(const Graph& graph, const KnownValues& known, const Schedule& schedule, int threads,
                    const PlannedNodes& planned) {
  if (schedule.is_sequential()) return plan_sequential(graph, known, planned);
  Plan plan = Planner(graph, known, planned).run(schedule_order(schedule, graph).nodes);
  assign_threads(plan, graph, schedule, threads);
  return plan;
}

}  // namespace autograph

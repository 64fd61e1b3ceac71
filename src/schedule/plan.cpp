#include "schedule/plan.h"

#include <algorithm>

#include "autograph/op_def.h"
#include "base/check.h"
#include "base/checked_int.h"
#include "base/join.h"
#include "base/printable.h"

namespace autograph {
namespace {

// How many tensors an error about memory lists.
constexpr size_t kListed = 10;

std::string name_of(const Graph& graph, ValueId value) {
  if (!value.is_valid()) return "scratch";
  const std::string& name = graph.value(value).name();
  return name.empty() ? fmt::format("%{}", value.index) : printable(name);
}

std::string print_place(const Slot& slot) {
  switch (slot.place) {
    case Place::input: return fmt::format("input{}", slot.index);
    case Place::weight: return fmt::format("weight{}", slot.index);
    case Place::output: return fmt::format("output{}", slot.index);
    case Place::arena: return fmt::format("@{}", slot.offset);
    case Place::heap: return "heap";
  }
  return "?";
}

std::string print_slots(const Plan& plan, const std::vector<SlotIndex>& slots) {
  std::vector<std::string> texts;
  for (const SlotIndex s : slots) {
    if (s == kNoSlot) {
      texts.emplace_back("_");
    } else {
      const Slot& slot = plan.slots[s];
      const std::string layout = slot.layout == Layout::row_major ? "" : fmt::format(" {}", to_string(slot.layout));
      const std::string rows = slot.row_stride == 0 ? "" : fmt::format(" every {} bytes", slot.row_stride);
      texts.push_back(fmt::format("s{}:{}{} {}{}", s, to_string(slot.type), layout, print_place(slot), rows));
    }
  }
  return join(texts, ", ");
}

std::string print_stage(const PlanStage& stage) {
  if (stage.streams.empty()) return "one stream:\n";
  return fmt::format("{} streams of {} thread{}:\n", stage.streams.size(), stage.threads,
                     stage.threads == 1 ? "" : "s");
}

std::string print_waits(const Step& step) {
  std::string text = fmt::format(" stage {} stream {}", step.stage, step.stream);
  if (!step.waits.empty()) text += fmt::format(" waits({})", join(step.waits, ", "));
  return text;
}

std::string name_of_output(const Graph& graph, size_t k) {
  const size_t num_outputs = graph.outputs().size();
  if (k < num_outputs) return quoted(graph.output_name(k));
  return "state " + quoted(graph.value(graph.updates()[k - num_outputs].state).name());
}

std::string print_shared(const Plan& plan, size_t k) {
  for (const SharedMemory& pair : plan.shared) {
    if (pair.output == k) return fmt::format(" over input{}", pair.input);
  }
  return "";
}

}  // namespace

std::vector<int> count_uses(const Plan& plan) {
  std::vector<int> count(plan.slots.size(), 0);
  const auto use = [&](SlotIndex s) {
    if (s != kNoSlot) ++count[s];
  };
  for (const Step& step : plan.steps) {
    std::for_each(step.inputs.begin(), step.inputs.end(), use);
    std::for_each(step.after.begin(), step.after.end(), use);
  }
  for (const PlanOutput& output : plan.outputs) use(output.slot);
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    if (plan.slots[s].root != s) use(plan.slots[s].root);
  }
  return count;
}

std::string describe_largest(const Plan& plan, const Graph& graph) {
  std::vector<SlotIndex> order;
  for (SlotIndex s = 0; s < plan.slots.size(); ++s) {
    const Slot& slot = plan.slots[s];
    if (slot.root == s && (slot.place == Place::arena || slot.place == Place::output)) order.push_back(s);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](SlotIndex a, SlotIndex b) { return plan.slots[a].bytes > plan.slots[b].bytes; });
  if (order.size() > kListed) order.resize(kListed);
  std::string text;
  for (const SlotIndex s : order) {
    const Slot& slot = plan.slots[s];
    const NodeId producer = graph.value(slot.value).producer();
    text += fmt::format("\n  {} bytes {} {} {}", slot.bytes, to_string(slot.type), name_of(graph, slot.value),
                        producer.is_valid() ? "made by " + describe(graph, producer) : "copied from the host");
  }
  return text;
}

std::string print_plan(const Plan& plan, const Graph& graph) {
  std::string text =
      fmt::format("plan: {} steps, arena {} bytes (sum of tensors {}, lower bound {})\n", plan.steps.size(),
                  plan.arena_bytes, plan.sum_of_tensors_bytes, plan.lower_bound_bytes);
  auto stage = plan.stages.begin();
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (stage != plan.stages.end() && stage->begin == i) text += print_stage(*stage++);
    std::string notes;
    if (step.threads > 0) notes += print_waits(step);
    if (step.in_place >= 0) notes += fmt::format(" in-place({})", step.in_place);
    if (step.scratch_bytes > 0) notes += fmt::format(" scratch {}@{}", step.scratch_bytes, step.scratch_offset);
    std::string_view op = step.is_transfer() ? "copy" : "reorder";
    if (!step.is_reorder()) {
      const Node& node = graph.node(step.node);
      op = node.op().name;
      if (!node.provenance().empty()) notes += "  # " + printable(node.provenance().to_string());
    }
    text += fmt::format("{:5} {} [{}] ({}) -> ({}){}\n", i, op, step.kernel, print_slots(plan, step.inputs),
                        print_slots(plan, step.outputs), notes);
  }
  for (size_t k = 0; k < plan.outputs.size(); ++k) {
    const PlanOutput& output = plan.outputs[k];
    text += fmt::format("output{} {} = s{}{}{}\n", k, name_of_output(graph, k), output.slot,
                        output.direct ? "" : " (copied)", print_shared(plan, k));
  }
  return text;
}

}  // namespace autograph

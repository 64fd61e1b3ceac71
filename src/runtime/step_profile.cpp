#include "runtime/step_profile.h"

#include <fmt/core.h>

#include "autograph/op_def.h"
#include "runtime/choose_kernels.h"

namespace autograph {
namespace {

OpCost work_of(const CompiledPlan& compiled, const Step& step) {
  if (step.is_reorder()) {
    const Plan& plan = compiled.plan;
    return {0, static_cast<double>(plan.slots[step.inputs[0]].bytes + plan.slots[step.outputs[0]].bytes)};
  }
  if (step.kind != StepKind::fixed) return {};
  const StepCall types(compiled.plan, step);
  const Node& node = compiled.graph->node(step.node);
  return cost_of(node.op(), {node.attributes(), types.inputs, types.outputs});
}

// Of the first input and the first output: "row_major", or "row_major -> nchw16c" where they differ.
std::string layout_of(const Plan& plan, const Step& step) {
  const auto name_of = [&](const std::vector<SlotIndex>& slots) -> std::string_view {
    const bool has_slot = !slots.empty() && slots[0] != kNoSlot && plan.slots[slots[0]].type.is_tensor();
    return has_slot ? to_string(plan.slots[slots[0]].layout) : "";
  };
  const std::string_view from = name_of(step.inputs);
  const std::string_view to = name_of(step.outputs);
  if (from.empty() || from == to) return std::string(to);
  return fmt::format("{} -> {}", from, to);
}

}  // namespace

std::vector<StepProfile> describe_steps(const CompiledPlan& compiled) {
  std::vector<StepProfile> profiles;
  for (size_t i = 0; i < compiled.plan.steps.size(); ++i) {
    const Step& step = compiled.plan.steps[i];
    StepProfile& profile = profiles.emplace_back();
    profile.name = compiled.provenance[i];
    profile.op = op_name(compiled, step);
    profile.kernel = step.kernel;
    profile.stream = static_cast<int>(step.stream);
    profile.layout = layout_of(compiled.plan, step);
    const OpCost work = work_of(compiled, step);
    profile.flops = work.flops;
    profile.bytes = work.bytes;
    profile.choice = i;
  }
  return profiles;
}

}  // namespace autograph

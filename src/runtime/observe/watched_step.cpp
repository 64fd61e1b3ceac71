#include "runtime/observe/watched_step.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/op_def.h"

namespace autograph {
namespace {

std::string name_of(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (!value.name().empty() || !value.producer().is_valid()) return value.name();
  // The last of joined nodes is the one that made it, and goes by this name where it is a node of its own.
  const Node& node = graph.node(value.producer());
  std::string name = node.provenance().empty() ? std::string(node.op().name) : node.provenance().origins().back();
  if (value.slot() > 0) name += fmt::format(":{}", value.slot());
  return name;
}

bool is_wanted(const NodeWatch& watch, const CompiledPlan& compiled, size_t number) {
  const Step& step = compiled.plan.steps[number];
  const Node& node = compiled.graph->node(step.node);
  std::vector<std::string_view> names{compiled.provenance[number], node.op().name};
  for (const std::string& origin : node.provenance().origins()) names.push_back(origin);
  for (const ValueId output : node.outputs()) names.push_back(compiled.graph->value(output).name());
  return watch.wants(names);
}

// Does the step write where `slot` lies?
bool is_written_over(const Plan& plan, const Step& step, SlotIndex slot) {
  return std::any_of(step.outputs.begin(), step.outputs.end(), [&](SlotIndex output) {
    if (output == kNoSlot) return false;
    const Slot& in = plan.slots[plan.slots[slot].root];
    const Slot& out = plan.slots[plan.slots[output].root];
    if (in.place == Place::heap || in.place == Place::weight) return false;
    if (in.place == Place::arena && out.place == Place::arena) {
      return in.offset < out.offset + out.bytes && out.offset < in.offset + in.bytes;
    }
    // A caller's input, whose memory may be donated to an output.
    return in.place == Place::input ? out.place == Place::output : &in == &out;
  });
}

}  // namespace

std::optional<WatchedStep> WatchedStep::begin(NodeWatch* watch, const CompiledPlan& compiled, size_t number,
                                              ReadSlot read) {
  if (!watch || compiled.plan.steps[number].is_reorder() || !is_wanted(*watch, compiled, number)) return std::nullopt;
  return WatchedStep(*watch, compiled, number, read);
}

WatchedStep::WatchedStep(NodeWatch& watch, const CompiledPlan& compiled, size_t number, ReadSlot read)
    : watch_(&watch), compiled_(&compiled) {
  const Plan& plan = compiled.plan;
  const Step& step = plan.steps[number];
  run_.step = number;
  run_.name = compiled.provenance[number];
  run_.op = compiled.graph->node(step.node).op().name;
  run_.kernel = step.kernel;
  for (const SlotIndex slot : step.inputs) {
    NodeValue& input = run_.inputs.emplace_back();
    if (slot == kNoSlot) continue;
    input.name = name_of(*compiled.graph, plan.slots[slot].value);
    input.is_constant = plan.slots[plan.slots[slot].root].place == Place::weight;
    input.value = read(slot);
    if (input.value.is_tensor() && is_written_over(plan, step, slot)) input.value = input.value.tensor().clone();
  }
}

void WatchedStep::show(ReadSlot read) {
  const Step& step = compiled_->plan.steps[run_.step];
  for (const SlotIndex slot : step.outputs) {
    NodeValue& output = run_.outputs.emplace_back();
    if (slot == kNoSlot) continue;
    output.name = name_of(*compiled_->graph, compiled_->plan.slots[slot].value);
    output.value = read(slot);
  }
  watch_->show(run_);
}

}  // namespace autograph

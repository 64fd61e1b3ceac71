#include "runtime/cold_states.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "tensor/size_of.h"

namespace autograph {
namespace {

// From which to which step a state or its new value is used.
struct Span {
  size_t first = std::numeric_limits<size_t>::max();
  size_t last = 0;
  bool is_used() const { return first <= last; }
  size_t length() const { return is_used() ? last - first : 0; }
  void add(size_t step) {
    first = std::min(first, step);
    last = std::max(last, step);
  }
};

struct ColdState {
  uint32_t input = 0;
  size_t length = 0;
  size_t bytes = 0;
};

// Nothing where the state is no plain tensor, leaves the run as it is, or takes a value that no step makes.
std::optional<Span> find_use(const Plan& plan, uint32_t input) {
  const SlotIndex state = plan.inputs[input];
  if (!is_plain(plan.slots[state].type) || plan.slots[state].bytes == 0) return std::nullopt;
  for (const PlanOutput& output : plan.outputs) {
    if (plan.slots[output.slot].root == state) return std::nullopt;
  }
  SlotIndex made = kNoSlot;
  for (const SharedMemory& pair : plan.shared) {
    if (pair.input == input) made = plan.slots[plan.outputs[pair.output].slot].source;
  }
  Span use;
  bool is_made = made == kNoSlot;
  for (size_t n = 0; n < plan.steps.size(); ++n) {
    const Step& step = plan.steps[n];
    const auto reads = [&](SlotIndex s) { return s != kNoSlot && plan.slots[s].root == state; };
    if (std::any_of(step.inputs.begin(), step.inputs.end(), reads)) use.add(n);
    if (made == kNoSlot || std::find(step.outputs.begin(), step.outputs.end(), made) == step.outputs.end()) continue;
    use.add(n);
    is_made = true;
  }
  return is_made ? std::optional(use) : std::nullopt;
}

}  // namespace

size_t bytes_on_device(const CompiledPlan& compiled) {
  const Plan& plan = compiled.plan;
  const size_t num_inputs = compiled.graph->inputs().size();
  size_t bytes = plan.arena_bytes;
  for (size_t k = 0; k < compiled.graph->outputs().size(); ++k) bytes += plan.slots[plan.outputs[k].slot].bytes;
  for (size_t i = num_inputs; i < plan.inputs.size(); ++i) bytes += plan.slots[plan.inputs[i]].bytes;
  for (const uint32_t i : compiled.states_on_host) bytes -= plan.slots[plan.inputs[i]].bytes;
  return bytes;
}

std::vector<uint32_t> find_cold_states(const CompiledPlan& compiled, size_t budget) {
  const size_t needed = bytes_on_device(compiled);
  if (compiled.has_dynamic_steps || needed <= budget) return {};
  const Plan& plan = compiled.plan;
  std::vector<ColdState> candidates;
  for (size_t i = compiled.graph->inputs().size(); i < plan.inputs.size(); ++i) {
    const auto input = static_cast<uint32_t>(i);
    const auto& known = compiled.states_on_host;
    if (std::find(known.begin(), known.end(), input) != known.end()) continue;
    if (const auto use = find_use(plan, input)) {
      candidates.push_back({input, use->length(), plan.slots[plan.inputs[i]].bytes});
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [](const ColdState& a, const ColdState& b) {
    return a.length != b.length ? a.length < b.length : a.bytes > b.bytes;
  });
  std::vector<uint32_t> cold;
  size_t saved = 0;
  size_t staged = 0;  // what the arena grows by at least: one of them
  for (const ColdState& state : candidates) {
    if (saved >= needed - budget + staged) break;
    cold.push_back(state.input);
    saved += state.bytes;
    staged = std::max(staged, state.bytes);
  }
  return cold;
}

}  // namespace autograph

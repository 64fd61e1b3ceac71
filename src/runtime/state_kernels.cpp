#include "runtime/state_kernels.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "runtime/choose_kernels.h"
#include "runtime/compiled_plan.h"
#include "runtime/launchable.h"
#include "runtime/memory/packed_constants.h"
#include "runtime/step_error.h"

namespace autograph {
namespace {

// Inputs of the plan that a step reads and whose elements are known.
std::vector<uint32_t> known_inputs(const Plan& plan, const Step& step, const std::vector<StateContents>& states) {
  std::vector<uint32_t> inputs;
  if (step.kind != StepKind::fixed || step.is_reorder()) return inputs;
  for (const SlotIndex s : step.inputs) {
    if (known_state(plan, s, states)) inputs.push_back(plan.slots[s].index);
  }
  return inputs;
}

std::unique_ptr<Kernel> make_kernel(const CompiledPlan& compiled, size_t number,
                                    const std::vector<StateContents>& states, const RunOptions& options) {
  const Step& step = compiled.plan.steps[number];
  const KernelCandidate& candidate = compiled.candidates[number];
  const Node& node = compiled.graph->node(step.node);
  const StepCall types(compiled.plan, step, states);
  const int threads = step.threads > 0 ? step.threads : options.threads;
  options.host_threads.set(threads);
  Prepared prepared = options.catalog.prepare({.op = node.op(),
                                               .attributes = node.attributes(),
                                               .inputs = types.inputs,
                                               .outputs = types.outputs,
                                               .constants = types.constants,
                                               .threads = threads,
                                               .exact = options.exact,
                                               .packed = options.packed},
                                              candidate);
  options.host_threads.set(options.threads);
  const bool fits = prepared.kernel && prepared.kernel->scratch_bytes() <= step.scratch_bytes;
  AG_CHECK_USER(fits, UnsupportedError,
                "[run] kernel '{}': expected to serve whatever its states hold, got {} for what they hold now; "
                "compile with constants instead (StateStore::copy_to() and Graph::freeze())",
                candidate.name(), prepared.kernel ? "more scratch memory" : prepared.refusal);
  return std::move(prepared.kernel);
}

}  // namespace

const StateContents* known_state(const Plan& plan, SlotIndex slot, std::span<const StateContents> states) {
  if (slot == kNoSlot || plan.slots[slot].place != Place::input || plan.slots[slot].index >= states.size()) {
    return nullptr;
  }
  const StateContents& state = states[plan.slots[slot].index];
  // Parts of a state may lie in it, too.
  const Type& type = plan.slots[slot].type;
  const bool is_whole = state.tensor.is_present() && type.is_static() && type.dtype() == state.tensor.dtype() &&
                        type.shape().num_elements() == state.tensor.num_elements();
  return is_whole ? &state : nullptr;
}

std::vector<StateContents> known_states(const Graph& graph) {
  std::set<uint32_t> updated;
  for (const auto& update : graph.updates()) updated.insert(update.state.index);
  std::vector<StateContents> known(graph.inputs().size());
  for (const ValueId state : graph.states()) {
    const Tensor& initial = graph.value(state).initial();
    const bool lasts =
        !updated.contains(state.index) && dtypes::kFloat.contains(initial.dtype()) && initial.num_elements() > 1;
    known.push_back(lasts ? StateContents{initial} : StateContents{});
  }
  return known;
}

bool StateKernels::knows_states(const Plan& plan, const Step& step) const {
  return !known_inputs(plan, step, states_).empty();
}

void StateKernels::add(const Plan& plan, size_t number, std::unique_ptr<Kernel> kernel) {
  Entry entry{.number = number,
              .inputs = known_inputs(plan, plan.steps[number], states_),
              .versions = {},
              .kernel = std::move(kernel)};
  for (const uint32_t input : entry.inputs) entry.versions.push_back(states_[input].version);
  entries_.push_back(std::move(entry));
}

void StateKernels::take(size_t k, Taken& taken) {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[k];
  if (!entry.kernel || entry.made == taken.made) return;
  taken = {entry.kernel.get(), entry.kernel->new_state(), entry.made};
}

void StateKernels::renew(size_t k, const CompiledPlan& compiled, const std::vector<StateContents>& states,
                         const RunOptions& options) {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[k];
  std::vector<uint64_t> versions;
  for (const uint32_t input : entry.inputs) versions.push_back(states[input].version);
  if (entry.kernel && versions == entry.versions) return;
  // What it has packed makes room first. No run is using it: runs at the same time see the same contents.
  entry.kernel.reset();
  if (options.packed) {
    for (const uint32_t input : entry.inputs) options.packed->renew(states[input].tensor, states[input].version);
  }
  try {
    entry.kernel = make_kernel(compiled, entry.number, states, options);
  } catch (...) {
    rethrow_with_place(describe_step(compiled, compiled.plan.steps[entry.number]));
  }
  entry.versions = std::move(versions);
  ++entry.made;
}

}  // namespace autograph

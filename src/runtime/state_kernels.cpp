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

std::unique_ptr<Kernel> make_kernel(const CompiledPlan& compiled, size_t number,
                                    const std::vector<StateContents>& states, const RunOptions& options, int threads) {
  const Step& step = compiled.plan.steps[number];
  const KernelCandidate& candidate = compiled.candidates[number];
  const Node& node = compiled.graph->node(step.node);
  const StepCall types(compiled.plan, step, states);
  Prepared prepared = options.catalog.prepare({.op = node.op(),
                                               .attributes = node.attributes(),
                                               .inputs = types.inputs,
                                               .outputs = types.outputs,
                                               .constants = types.constants,
                                               .threads = threads,
                                               .exact = options.exact,
                                               .packed = options.packed},
                                              candidate);
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

Tensor StateKernels::known_elements(ValueId value) const {
  if (const StateContents* computed = computed_.find(value)) return computed->tensor;
  const std::vector<ValueId> values = inputs_and_states(*graph_);
  const auto at = std::find(values.begin(), values.end(), value);
  return at == values.end() ? Tensor() : states_[static_cast<size_t>(at - values.begin())].tensor;
}

// Null where the kernel of a step knows nothing of this input: of what is computed only nested graphs do.
const StateContents* StateKernels::known_input(const Plan& plan, const Step& step, size_t slot,
                                               std::span<const StateContents> states) const {
  const SlotIndex s = step.inputs[slot];
  if (s == kNoSlot || !graph_->node(step.node).op().traits.control_flow) return known_state(plan, s, states);
  const StateContents* computed = computed_.find(plan.slots[s].value);
  return computed ? computed : known_state(plan, s, states);
}

bool StateKernels::knows_states(const Plan& plan, const Step& step) const {
  if (step.kind != StepKind::fixed || step.is_reorder()) return false;
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    if (known_input(plan, step, i, states_)) return true;
  }
  return false;
}

void StateKernels::add(const Plan& plan, size_t number, std::unique_ptr<Kernel> kernel) {
  Entry entry{.number = number, .versions = {}, .kernel = std::move(kernel)};
  const Step& step = plan.steps[number];
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const StateContents* state = known_input(plan, step, i, states_);
    entry.versions.push_back(state ? state->version : 0);
  }
  entries_.push_back(std::move(entry));
}

void StateKernels::take(size_t k, Taken& taken) {
  const std::lock_guard lock(mutex_);
  const Entry& entry = entries_[k];
  if (!entry.kernel || entry.made == taken.made) return;
  taken = {entry.kernel.get(), entry.kernel->new_state(), entry.made};
}

void StateKernels::renew(const CompiledPlan& compiled, const std::vector<StateContents>& states,
                         const RunOptions& options) {
  const std::lock_guard lock(mutex_);
  computed_.renew(*graph_, states);
  for (Entry& entry : entries_) renew(entry, compiled, states, options);
}

void StateKernels::renew(Entry& entry, const CompiledPlan& compiled, const std::vector<StateContents>& states,
                         const RunOptions& options) const {
  const Plan& plan = compiled.plan;
  const Step& step = plan.steps[entry.number];
  std::vector<uint64_t> versions = entry.versions;
  std::vector<StateContents> written(step.inputs.size());
  for (size_t i = 0; i < step.inputs.size(); ++i) {
    const StateContents* state = known_input(plan, step, i, states);
    if (!state || state->version == versions[i]) continue;
    versions[i] = state->version;
    written[i] = {state->tensor.reshaped(plan.slots[step.inputs[i]].type.shape().static_dims()), state->version};
    if (options.packed) options.packed->renew(state->tensor, state->version);
  }
  if (entry.kernel && versions == entry.versions) return;
  try {
    // No run is using it: runs at the same time see the same contents.
    pack(entry, compiled, states, written, options);
  } catch (...) {
    entry.kernel.reset();  // it may have packed some of them
    rethrow_with_place(describe_step(compiled, step));
  }
  entry.versions = std::move(versions);
  ++entry.made;
}

void StateKernels::pack(Entry& entry, const CompiledPlan& compiled, const std::vector<StateContents>& states,
                        std::span<const StateContents> written, const RunOptions& options) {
  const Step& step = compiled.plan.steps[entry.number];
  const int threads = step.threads > 0 ? step.threads : options.threads;
  options.host_threads.set(threads);
  auto* const packing = dynamic_cast<PackingKernel*>(entry.kernel.get());
  if (!packing || !packing->renew(written, options.packed)) {
    entry.kernel.reset();  // what it has packed makes room first
    entry.kernel = make_kernel(compiled, entry.number, states, options, threads);
  }
  options.host_threads.set(options.threads);
}

}  // namespace autograph

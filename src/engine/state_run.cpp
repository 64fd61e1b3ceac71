#include "engine/state_run.h"

#include <algorithm>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {

size_t StateRun::number_of(ValueId state) const {
  const auto at = std::find(graph_.states().begin(), graph_.states().end(), state);
  return static_cast<size_t>(at - graph_.states().begin());
}

StateRun::StateRun(std::optional<StateStore>& store, const std::vector<StoredState*>& stored, const Memory* memory,
                   Launchable& launchable)
    : stored_(stored),
      launchable_(launchable),
      graph_(*launchable.compiled().graph),
      copies_(launchable.compiled().has_dynamic_steps) {
  if (stored.empty()) return;
  const bool updates = !graph_.updates().empty();
  lock_.emplace(*store, updates);
  const size_t first = graph_.inputs().size();
  for (size_t i = 0; i < stored.size(); ++i) {
    const auto& on_host = launchable.compiled().states_on_host;
    const bool waits = std::find(on_host.begin(), on_host.end(), first + i) != on_host.end();
    if (waits && updates) make_ready_for_transfers(*stored[i], *memory);
    const Tensor& state = in_memory(*stored[i], *store, waits ? nullptr : memory, updates);
    launchable.set_state(first + i, state, stored[i]->version);
    if (copies_) {
      launchable.bind_input(first + i, state.clone());
    } else {
      launchable.bind_input(first + i, state);
    }
  }
  bind_updates();
}

// Whatever ended the run, it may have written them.
StateRun::~StateRun() {
  if (!lock_) return;
  for (const StateUpdate& update : graph_.updates()) ++state_of(update).version;
}

// In memory of the host that copies of the device are fast with, which need not be where it is.
void StateRun::make_ready_for_transfers(StoredState& state, const Memory& memory) {
  const Buffer& now = state.tensor.buffer();
  if (now.is_on_host() && memory.is_for_transfers(now.data(), now.size_bytes())) return;
  const size_t bytes = state.tensor.size_bytes();
  Buffer there = Buffer::for_transfers(bytes, memory);
  copy_bytes(there, now, bytes);
  state.tensor = Tensor::wrap(state.tensor.dtype(), state.tensor.dims(), std::move(there));
  state.copy = Tensor();
}

const Tensor& StateRun::in_memory(StoredState& state, StateStore& store, const Memory* memory, bool updates) {
  if (state.tensor.buffer().memory() == memory) return state.tensor;
  // Others may be reading it where it is, unless this run has the store alone.
  if (updates) {
    state.copy = Tensor();
    return state.tensor = state.tensor.to(memory);
  }
  read_elsewhere_.reserve(stored_.size());  // they stay where they are
  return read_elsewhere_.emplace_back(store.impl().copy_in(state, memory));
}

void StateRun::bind_updates() {
  const size_t first = graph_.outputs().size();
  for (size_t u = 0; u < graph_.updates().size(); ++u) {
    Tensor& tensor = state_of(graph_.updates()[u]).tensor;
    if (copies_) fresh_.push_back(Tensor::empty(tensor.dtype(), tensor.dims(), tensor.buffer().memory()));
    if (!launchable_.is_fixed_output(first + u)) continue;
    launchable_.bind_output(first + u, copies_ ? fresh_.back() : tensor);
  }
}

void StateRun::finish() {
  const size_t first = graph_.outputs().size();
  for (size_t u = 0; u < fresh_.size(); ++u) {
    if (!launchable_.is_fixed_output(first + u)) fresh_[u] = launchable_.take_output(first + u).tensor();
    const ValueId state = graph_.updates()[u].state;
    AG_CHECK_USER(fresh_[u].type() == graph_.type(state), ShapeError, "[run] update of state '{}': expected {}, got {}",
                  printable(graph_.value(state).name()), to_string(graph_.type(state)), to_string(fresh_[u].type()));
  }
  for (size_t u = 0; u < fresh_.size(); ++u) {
    Tensor& tensor = state_of(graph_.updates()[u]).tensor;
    if (tensor.dtype() == DType::string) {
      tensor = fresh_[u].clone();
    } else {
      copy_bytes(tensor.buffer(), fresh_[u].buffer(), tensor.size_bytes());
    }
  }
}

}  // namespace autograph

#include "engine/state_run.h"

#include <algorithm>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

size_t number_of(const Graph& graph, ValueId state) {
  const auto at = std::find(graph.states().begin(), graph.states().end(), state);
  return static_cast<size_t>(at - graph.states().begin());
}

}  // namespace

StateRun::StateRun(std::optional<StateStore>& store, const std::vector<Tensor*>& tensors, const Memory* memory,
                   Launchable& launchable)
    : tensors_(tensors),
      launchable_(launchable),
      graph_(*launchable.compiled().graph),
      copies_(launchable.compiled().has_dynamic_steps) {
  if (tensors.empty()) return;
  const bool updates = !graph_.updates().empty();
  lock_.emplace(*store, updates);
  const size_t first = graph_.inputs().size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& state = in_memory(*tensors[i], memory, updates);
    if (copies_) {
      launchable.bind_input(first + i, state.clone());
    } else {
      launchable.bind_input(first + i, state);
    }
  }
  bind_updates();
}

const Tensor& StateRun::in_memory(Tensor& state, const Memory* memory, bool updates) {
  if (state.buffer().memory() == memory) return state;
  Tensor moved = state.to(memory);
  // Others may be reading it where it is, unless this run has the store alone.
  if (updates) return state = std::move(moved);
  read_elsewhere_.reserve(tensors_.size());  // they stay where they are
  return read_elsewhere_.emplace_back(std::move(moved));
}

void StateRun::bind_updates() {
  const size_t first = graph_.outputs().size();
  for (size_t u = 0; u < graph_.updates().size(); ++u) {
    Tensor& tensor = *tensors_[number_of(graph_, graph_.updates()[u].state)];
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
    Tensor& tensor = *tensors_[number_of(graph_, graph_.updates()[u].state)];
    if (tensor.dtype() == DType::string) {
      tensor = fresh_[u].clone();
    } else {
      copy_bytes(tensor.buffer(), fresh_[u].buffer(), tensor.size_bytes());
    }
  }
}

}  // namespace autograph

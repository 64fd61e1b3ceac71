#include "engine/state_run.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

size_t number_of(const Graph& graph, ValueId state) {
  const auto at = std::find(graph.states().begin(), graph.states().end(), state);
  return static_cast<size_t>(at - graph.states().begin());
}

}  // namespace

StateRun::StateRun(std::optional<StateStore>& store, const std::vector<Tensor*>& tensors, RunContext& context)
    : tensors_(tensors),
      context_(context),
      graph_(*context.compiled().graph),
      copies_(context.compiled().has_dynamic_steps) {
  if (tensors.empty()) return;
  lock_.emplace(*store, !graph_.updates().empty());
  const size_t first = graph_.inputs().size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Tensor& tensor = *tensors[i];
    context.bind_input(first + i, copies_ ? tensor.clone() : tensor);
  }
  bind_updates();
}

void StateRun::bind_updates() {
  const size_t first = graph_.outputs().size();
  for (size_t u = 0; u < graph_.updates().size(); ++u) {
    Tensor& tensor = *tensors_[number_of(graph_, graph_.updates()[u].state)];
    if (copies_) fresh_.push_back(Tensor::empty(tensor.dtype(), tensor.dims()));
    if (!context_.is_fixed_output(first + u)) continue;
    context_.bind_output(first + u, copies_ ? fresh_.back().mutable_raw() : tensor.mutable_raw());
  }
}

void StateRun::finish() {
  const size_t first = graph_.outputs().size();
  for (size_t u = 0; u < fresh_.size(); ++u) {
    if (!context_.is_fixed_output(first + u)) fresh_[u] = context_.take_output(first + u).tensor();
    const ValueId state = graph_.updates()[u].state;
    AG_CHECK_USER(fresh_[u].type() == graph_.type(state), ShapeError, "[run] update of state '{}': expected {}, got {}",
                  printable(graph_.value(state).name()), to_string(graph_.type(state)), to_string(fresh_[u].type()));
  }
  for (size_t u = 0; u < fresh_.size(); ++u) {
    Tensor& tensor = *tensors_[number_of(graph_, graph_.updates()[u].state)];
    if (tensor.dtype() == DType::string) {
      tensor = fresh_[u].clone();
    } else if (tensor.size_bytes() > 0) {
      std::memcpy(tensor.mutable_raw(), fresh_[u].raw(), tensor.size_bytes());
    }
  }
}

}  // namespace autograph

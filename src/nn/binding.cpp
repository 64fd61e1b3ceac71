#include "nn/binding.h"

namespace autograph::nn {
namespace {

ValueId find_state(const Graph& graph, const std::string& name) {
  for (const ValueId id : graph.states()) {
    if (graph.value(id).name() == name) return id;
  }
  return {};
}

}  // namespace

Var state_beside(const Var& like, const std::string& name, const Tensor& initial) {
  const ValueId known = find_state(like.graph(), name);
  return known.is_valid() ? Var(like.graph(), known) : state(like.graph(), initial, name);
}

Var latest_of(const Var& state) {
  for (const StateUpdate& update : state.graph().updates()) {
    if (update.state == state.id()) return {state.graph(), update.value};
  }
  return state;
}

bool has_state(const Var& like, const std::string& name) { return find_state(like.graph(), name).is_valid(); }

Var constant_beside(const Var& like, Tensor tensor) { return constant(like.graph(), std::move(tensor)); }

RandomSource random_source(const Var& like, uint64_t seed) {
  const bool is_new = !has_state(like, "random/step");
  const Var from = state_beside(like, "random/seed", Tensor::scalar(static_cast<int64_t>(seed)));
  const Var step = state_beside(like, "random/step", Tensor::scalar(int64_t{0}));
  if (is_new) update(step, step + 1);
  return {from, step};
}

}  // namespace autograph::nn

#include "nn/binding.h"

#include "autograph/eager.h"
#include "autograph/op_def.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/random.h"
#include "base/hash.h"
#include "ops/defs.h"
#include "ops/gradients.h"

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

bool wants_eager(const Var& like) { return like.is_eager() || is_capturing(); }

namespace {

Var random_of_states(const Var& x, uint64_t seed) {
  const bool is_new = !has_state(x, "random/step");
  const Var from = state_beside(x, "random/seed", Tensor::scalar(static_cast<int64_t>(seed)));
  const Var step = state_beside(x, "random/step", Tensor::scalar(int64_t{0}));
  if (is_new) update(step, step + 1);
  return philox_uniform(extents_of(x), from, step);
}

}  // namespace

// The id is said, since there is no graph that counts its nodes; streams of different paths differ by their seeds.
Var random_like(const Var& x, uint64_t seed, const std::string& path, Var& count) {
  if (!wants_eager(x)) return random_of_states(x, seed);
  if (!count.is_valid()) count = variable(Tensor::scalar(0.0));
  const uint64_t key = Hasher().add(std::string_view(path)).finish().low ^ seed;
  const Var step = cast(detach(count), DType::i64);
  assign(count, detach(count) + 1);
  const Var from = constant_like(x, Tensor::scalar(static_cast<int64_t>(key)));
  return apply(philox_def(), {extents_of(x), from, step},
               {{"distribution", std::string("uniform")}, {"dtype", DType::f32}, {"id", int64_t{0}}});
}

}  // namespace autograph::nn

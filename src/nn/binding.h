// From parameters to values: the one place where modules know what kind of thing a Var is. In a graph a parameter is a
// state of its path.
#pragma once

#include <string>

#include "autograph/builder.h"

namespace autograph::nn {

/// The state `name` of the graph that `like` belongs to, which begins as `initial` where it is not there yet.
Var state_beside(const Var& like, const std::string& name, const Tensor& initial);

/// What `state` is after the updates so far: itself, where there are none.
Var latest_of(const Var& state);

/// Is it a state of that graph already?
bool has_state(const Var& like, const std::string& name);

/// A constant beside `like`.
Var constant_beside(const Var& like, Tensor tensor);

/// Where random numbers of the run come from: seed and step, i64 []. They are the states "random/seed" and
/// "random/step", of which the latter counts runs.
struct RandomSource {
  Var seed;
  Var step;
};
RandomSource random_source(const Var& like, uint64_t seed);

}  // namespace autograph::nn

// From parameters to values: the one place where modules know what kind of thing a Var is. In a graph a parameter is a
// state of its path, beside eager values a variable.
#pragma once

#include <string>

#include "autograph/builder.h"

namespace autograph::nn {

/// Do parameters beside `like` have to be eager values?
bool wants_eager(const Var& like);

/// The state `name` of the graph that `like` belongs to, which begins as `initial` where it is not there yet.
Var state_beside(const Var& like, const std::string& name, const Tensor& initial);

/// What `state` is after the updates so far: itself, where there are none.
Var latest_of(const Var& state);

/// Is it a state of that graph already? Not asked beside eager values.
bool has_state(const Var& like, const std::string& name);

/// Numbers in [0, 1) in the shape of x. In a graph of the states "random/seed" and "random/step", of which the latter
/// counts runs; beside eager values of `seed`, `path` and how often they were asked for, which `count` (f64 []) counts.
Var random_like(const Var& x, uint64_t seed, const std::string& path, Var& count);

}  // namespace autograph::nn

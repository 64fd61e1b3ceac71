// A graph computed in double precision, as a yardstick for gradients.
#pragma once

#include "autograph/graph.h"

namespace autograph {

/// A copy of `graph` that computes in f64 what it computes in f32, f16 and bf16: inputs, constants, attributes and
/// nested graphs. States become constants. Ops that do not take f64 compute as they did, between casts. Names stay.
Graph in_double(const Graph& graph);

/// The value as in_double() has it: floats as f64, all others as they are. Lists stay as they are.
Datum in_double(const Datum& value);

}  // namespace autograph

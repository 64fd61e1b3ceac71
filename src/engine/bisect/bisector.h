// Bisection over a list of passes; tests give one with a wrong pass in it.
#pragma once

#include "autograph/bisect.h"
#include "optimize/pass.h"

namespace autograph {

/// As bisect(), with `passes` in place of the pipeline (empty: the pipeline).
BisectReport bisect_passes(const Graph& graph, const CompileOptions& options, const std::vector<Datum>& inputs,
                           const BisectOptions& how, std::span<const PassDef> passes);

}  // namespace autograph

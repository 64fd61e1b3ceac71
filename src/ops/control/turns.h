// Running the body of a loop or scan turn by turn, in memory that is found while running.
#pragma once

#include <optional>
#include <vector>

#include "autograph/op_def.h"
#include "ops/control/turn_loop.h"

namespace autograph {

/// Runs the nested graph `body` at most `num_turns` times, and at least once. `inputs` are those of the body in the
/// first turn, but for slices, in whose place stands the whole tensor. Gives the last states, then the stacks; nothing
/// (and nothing has run) where shapes change from turn to turn or are not known before.
std::optional<std::vector<Datum>> run_turns(EvaluateContext& context, const TurnPlan& plan, int64_t num_turns,
                                            const std::vector<Datum>& inputs);

}  // namespace autograph

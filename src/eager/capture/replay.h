// Runs graphs node by node on eager values, so that gradients flow through them.
#pragma once

#include <span>
#include <vector>

#include "eager/prepared_call.h"

namespace autograph {

/// The outputs of `graph`, which has no states, for these inputs.
std::vector<Var> replay(const Graph& graph, std::span<const Var> inputs);

/// The outputs of a call of an op with a body in other ops, by that body.
std::vector<Var> replay_body(PreparedCall& call, std::span<const Var> inputs);

/// The same for a call that is not prepared yet: attributes and number of outputs as of Eager::apply().
std::vector<Var> apply_body(const OpDef& op, const std::vector<Var>& inputs, const Attributes& attributes,
                            int num_outputs);

}  // namespace autograph

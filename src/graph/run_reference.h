// Calls the reference implementation of an op whose output types are static.
#pragma once

#include <span>
#include <vector>

#include "autograph/op_def.h"

namespace autograph {

/// Runs op.reference, or loops over op.scalar, or runs the body of the op, into the given outputs.
void call_reference(const OpDef& op, const OpCall& call);

/// Allocates outputs of the given static types and calls the reference on `inputs` (absent = not given).
std::vector<Tensor> run_reference(const OpDef& op, const Attributes& attributes, std::span<const Tensor> inputs,
                                  std::span<const Type> output_types);

}  // namespace autograph

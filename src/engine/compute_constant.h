// Computes a node on constants while compiling: small ones by the reference, and products of weights, which may be as
// large as any of the model, with the kernels of the device.
#pragma once

#include <span>
#include <vector>

#include "autograph/compile.h"
#include "autograph/devices.h"
#include "autograph/op_def.h"

namespace autograph {

/// Outputs of static types; absent inputs are empty tensors. Throws what the reference throws.
std::vector<Tensor> compute_constant(const Device& device, const CompileOptions& options, const OpDef& op,
                                     const Attributes& attributes, std::span<const Tensor> inputs,
                                     std::span<const Type> output_types);

}  // namespace autograph

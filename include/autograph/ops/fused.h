// Several nodes run as one.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// Runs `body` on `inputs` as one node; one Var per output of `body`. Bodies hold pure ops on tensors without control
/// flow whose output shapes do not depend on the elements.
std::vector<Var> fused(const std::vector<Var>& inputs, GraphRef body);

}  // namespace autograph

// What the gradients of batch and layer normalization have in common: both take from the gradient of the normalised x
// what the mean and the variance take away.
#pragma once

#include <vector>

#include "autograph/builder.h"

namespace autograph {

/// x about its mean over `axes`, and 1 / sqrt(variance + epsilon), whose reduced axes have extent 1.
struct NormalizedParts {
  Var centred;
  Var inverse;
  Var normal;  ///< centred * inverse
};

NormalizedParts normalized_parts(const Var& x, const std::vector<int64_t>& axes, double epsilon);

/// The gradient of x where g flows into the normalised x: inverse * (g - mean(g) - normal * mean(g * normal)).
Var through_normalization(const NormalizedParts& parts, const Var& g, const std::vector<int64_t>& axes);

}  // namespace autograph

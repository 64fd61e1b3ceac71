// What becomes of the losses of all elements.
#pragma once

#include "autograph/nn/losses.h"

namespace autograph::nn {

/// `losses` after `reduction`.
Var reduced(const Var& losses, Reduction reduction);

/// `sum` by the first extent of x.
Var over_samples(const Var& sum, const Var& x);

}  // namespace autograph::nn

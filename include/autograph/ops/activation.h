// Typed builders of the activation functions. Shapes: the output has the shape of `x`.
#pragma once

#include "autograph/builder.h"

namespace autograph {

Var relu(Var x);
Var softmax(Var x, int64_t axis = -1);

}  // namespace autograph

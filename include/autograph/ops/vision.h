// Typed builders of the ops on images: x is [N, C, spatial...].
#pragma once

#include "autograph/builder.h"

namespace autograph {

/// Multiplies every extent by its scale; `attributes` are those of the resize op, for example {{"mode", "linear"}}.
Var resize(Var x, const std::vector<float>& scales, Attributes attributes = {});

}  // namespace autograph

// Which values may become states.
#pragma once

#include "autograph/shape.h"

namespace autograph {

/// May a value of type `value` replace a state of type `state`? Extents that are not known yet may.
bool may_update(const Type& state, const Type& value);

}  // namespace autograph

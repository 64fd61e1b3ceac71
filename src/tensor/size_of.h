// Bytes of tensors, as memory is planned and costs are estimated by.
#pragma once

#include <cstddef>

#include "autograph/layout.h"
#include "autograph/shape.h"
#include "autograph/tensor.h"

namespace autograph {

/// Bytes of a static tensor type; throws BudgetError when they overflow.
size_t size_of(const Type& type);

/// Bytes of a tensor type in a layout; throws BudgetError when they overflow.
size_t size_of(const Type& type, Layout layout);

}  // namespace autograph

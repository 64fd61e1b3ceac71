// Bytes of tensors, as memory is planned and costs are estimated by.
#pragma once

#include <cstddef>

#include "autograph/layout.h"
#include "autograph/shape.h"
#include "autograph/tensor.h"

namespace autograph {

/// Is the type a plain tensor whose size is known: something that can lie in an arena?
inline bool is_plain(const Type& type) { return type.is_static() && type.dtype() != DType::string; }

/// Bytes of a static tensor type; throws BudgetError when they overflow.
size_t size_of(const Type& type);

/// Bytes of a tensor type in a layout; throws BudgetError when they overflow.
size_t size_of(const Type& type, Layout layout);

}  // namespace autograph

// Elements in the order in which users know them, from whatever order kernels keep them in.
#pragma once

#include "autograph/layout.h"
#include "autograph/tensor.h"

namespace autograph {

/// A copy of the elements at `data` on the host, which lie in `layout`, in row-major order and without padding.
Tensor to_row_major(DType dtype, const Dims& dims, Layout layout, const void* data);

}  // namespace autograph

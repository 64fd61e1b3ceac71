// Finds NaN and infinity in tensors, for CompileOptions::check_nan.
#pragma once

#include <cstdint>

#include "autograph/tensor.h"

namespace autograph {

/// Position of the first NaN or infinity; -1 when there is none or the dtype has none.
int64_t find_nonfinite(const TensorView& tensor);

}  // namespace autograph

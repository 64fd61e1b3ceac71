// Finds NaN and infinity in tensors, for CompileOptions::check_nan.
#pragma once

#include <cstdint>

#include "autograph/tensor.h"

namespace autograph {

/// Position of the first NaN or infinity; -1 when there is none or the dtype has none.
int64_t find_nonfinite(const TensorView& tensor);

/// The worst that a tensor holds: a NaN rather than an infinity.
struct Nonfinite {
  int64_t at = -1;  ///< Of the first one; -1: every element is finite.
  bool is_nan = false;
};
Nonfinite find_worst(const TensorView& tensor);

}  // namespace autograph

// Where tensor_scatter begins to write.
#pragma once

#include <cstdint>

#include "autograph/tensor.h"
#include "base/check.h"

namespace autograph {

/// Of entry b of the batch, for `length` positions; write_indices may be absent. ValueError unless it lies in [0,
/// last].
inline int64_t first_position(const TensorView& write_indices, int64_t b, int64_t length, int64_t last) {
  const int64_t first = write_indices.is_present() ? write_indices.data<int64_t>()[b] : 0;
  AG_CHECK_USER(length == 0 || (first >= 0 && first <= last), ValueError,
                "[tensor_scatter] write_indices[{}]: expected 0..{}, got {}", b, last, first);
  return first;
}

}  // namespace autograph

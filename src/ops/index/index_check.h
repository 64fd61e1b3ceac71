// Bounds of indices that come from tensors: the one place that stands between hostile values and memory.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "autograph/tensor.h"
#include "base/check.h"
#include "ops/shape/axes.h"

namespace autograph {

/// `index` counted from the front; throws ValueError naming `op`, the index and the range unless
/// -extent <= index < extent.
inline int64_t checked_index(std::string_view op, int64_t index, int64_t extent) {
  AG_CHECK_USER(index >= -extent && index < extent, ValueError, "[{}] indices: expected {}..{} for extent {}, got {}",
                op, -extent, extent - 1, extent, index);
  return index < 0 ? index + extent : index;
}

/// All elements of an index input, checked and counted from the front.
inline std::vector<int64_t> checked_indices(std::string_view op, const TensorView& indices, int64_t extent) {
  std::vector<int64_t> result = read_integers(indices);
  for (int64_t& index : result) index = checked_index(op, index, extent);
  return result;
}

}  // namespace autograph

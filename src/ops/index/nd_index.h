// What gather_nd and scatter_nd share: the last dim of `indices` holds tuples that name slices of `data`.
#pragma once

#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// The slices of `data` that tuples of `depth` indices behind `batch_dims` batch dims name.
struct NdSlices {
  std::vector<int64_t> starts;  ///< Position of the first element of each slice.
  int64_t length = 1;           ///< Elements in a slice.
};

/// Resolves all tuples; throws ValueError naming `op` when one is out of range.
NdSlices resolve_nd(std::string_view op, const TensorView& data, const TensorView& indices, int64_t batch_dims);

}  // namespace autograph

#include "backends/gpu/emit/text/reduced_dims.h"

namespace autograph::gpu {

ReducedDims::ReducedDims(const Dims& dims, const std::vector<bool>& is_reduced) {
  const Dims strides = row_major_strides(dims);
  for (size_t a = 0; a < dims.size(); ++a) {
    Walk& walk = is_reduced[a] ? reduced : kept;
    walk.extents.push_back(dims[a]);
    walk.strides.push_back(strides[a]);
  }
  results = num_elements(kept.extents);
  combined = num_elements(reduced.extents);
}

}  // namespace autograph::gpu

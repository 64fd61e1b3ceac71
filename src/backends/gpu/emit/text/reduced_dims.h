// Which elements a reduction combines, as walks.
#pragma once

#include <optional>
#include <vector>

#include "backends/gpu/emit/text/index.h"

namespace autograph::gpu {

/// Result `o` combines, for all `r`, what is at position kept(o) + reduced(r) of a row-major tensor.
struct ReducedDims {
  ReducedDims(const Dims& dims, const std::vector<bool>& is_reduced);
  Walk kept;
  Walk reduced;
  int64_t results = 1;
  int64_t combined = 1;
};

}  // namespace autograph::gpu

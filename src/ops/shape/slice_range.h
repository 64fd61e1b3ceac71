// What a slice takes along one axis. Inference, the reference, kernels and rules share it.
#pragma once

#include <cstdint>

namespace autograph {

/// `count` elements from `start` on, `step` apart.
struct SliceRange {
  int64_t start = 0;
  int64_t step = 1;
  int64_t count = 0;
};

/// Of an axis of `extent`, as NumPy resolves positions: negative ones count from the end, those beyond the ends are
/// clamped. `step` is not 0.
SliceRange slice_range(int64_t start, int64_t end, int64_t step, int64_t extent);

}  // namespace autograph

// Sizes of pieces that lie one behind the other in memory, each where cache lines and wide vectors begin.
#pragma once

#include <cstddef>
#include <limits>

#include "base/check.h"

namespace autograph {

inline constexpr size_t kMemoryAlignment = 64;

/// `bytes` rounded up to the alignment; throws BudgetError when that overflows.
inline size_t aligned_size(size_t bytes) {
  AG_CHECK_USER(bytes <= std::numeric_limits<size_t>::max() - kMemoryAlignment, BudgetError,
                "[memory] tensor: {} bytes are more than can be addressed", bytes);
  return (bytes + kMemoryAlignment - 1) / kMemoryAlignment * kMemoryAlignment;
}

}  // namespace autograph

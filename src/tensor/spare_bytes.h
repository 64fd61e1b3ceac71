// Memory behind the last element of a tensor.
#pragma once

#include <cstddef>

namespace autograph {

/// One spare cache line, so that vector loads past the last element stay inside what belongs to the tensor.
inline constexpr size_t kSpareBytes = 64;

}  // namespace autograph

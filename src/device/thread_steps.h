// To how many threads kernels are limited while other programs keep processors busy: 1 to 8, 10, 12, 14, 16, 20, ...,
// four steps to a power of two.
//
// Libraries may have another form of a kernel for every number of threads. Limits come from this list alone, so that
// attestation can try all that a kernel may meet, and takes few runs on machines of many processors.
#pragma once

#include <algorithm>
#include <bit>

namespace autograph {

/// The largest number of the list that is no more than `threads`; 1 below that.
inline int thread_step_at_most(int threads) {
  const auto most = static_cast<unsigned>(std::max(threads, 1));
  const unsigned step = std::max(std::bit_floor(most) / 4, 1U);
  return static_cast<int>(most / step * step);
}

}  // namespace autograph

// Splitting work over threads that stay together for several steps.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include "backends/cpu/threads/parallel.h"

namespace autograph {

/// As for_shares() for `steps` steps, each begun when all shares of the one before are done: share(step, begin, end,
/// thread). The threads stay together from step to step, which takes a part of the time of a team for each.
template <class Share>
void for_shares_in_steps(int threads, int64_t steps, int64_t count, const Share& share) {
  threads = static_cast<int>(std::min<int64_t>(threads_allowed(threads), count));
// The thread sanitizer knows nothing of how the threads of a team wait for each other.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
  if (threads > 1) {
#pragma omp parallel num_threads(threads)
    {
      // OpenMP may give fewer threads than it was asked for.
      const int team = omp_get_num_threads(), t = omp_get_thread_num();
      for (int64_t step = 0; step < steps; ++step) {
        share(step, count * t / team, count * (t + 1) / team, t);
#pragma omp barrier
      }
    }
    return;
  }
#endif
  for (int64_t step = 0; step < steps; ++step) {
    for_shares(threads, count, [&](int64_t begin, int64_t end, int thread) { share(step, begin, end, thread); });
  }
}

}  // namespace autograph

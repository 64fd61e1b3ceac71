// Splitting work over threads that stay together for several steps.
#pragma once

#ifdef _OPENMP
#include <omp.h>
#endif

#include <array>

#include "backends/cpu/threads/parallel.h"
#include "backends/cpu/threads/step_units.h"

namespace autograph {

/// Calls body(step, units, thread) on each of at most `threads` threads for each of `steps` steps; all units of a step
/// together are 0..count-1, and a step begins when they are done. The threads stay together from step to step, which
/// takes a part of the time of a team for each. With `help` a thread that is done goes on with what others have not
/// begun, so that one whose processor is slower holds nobody up; that takes some 100 ns a step. What a unit computes
/// must not depend on who computes it.
template <class Body>
void for_units_in_steps(int threads, int64_t steps, int64_t count, [[maybe_unused]] bool help, const Body& body) {
  threads = static_cast<int>(std::min<int64_t>(threads_allowed(threads), count));
// The thread sanitizer knows nothing of how the threads of a team wait for each other.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
  if (threads > 1) {
    constexpr size_t kMostHelpers = 64;
    std::array<TakenUnits, kMostHelpers> taken;
    TakenUnits* const shared = help && threads <= static_cast<int>(kMostHelpers) ? taken.data() : nullptr;
#pragma omp parallel num_threads(threads)
    {
      // OpenMP may give fewer threads than it was asked for.
      const int team = omp_get_num_threads(), t = omp_get_thread_num();
      for (int64_t step = 0; step < steps; ++step) {
        StepUnits units(step, count, team, t, shared);
        body(step, units, t);
#pragma omp barrier
      }
    }
    return;
  }
#endif
  for (int64_t step = 0; step < steps; ++step) {
    for_shares(threads, threads, [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) {
        StepUnits units(step, count, threads, static_cast<int>(t), nullptr);
        body(step, units, static_cast<int>(t));
      }
    });
  }
}

}  // namespace autograph

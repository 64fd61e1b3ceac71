// Splitting work over the threads of an OpenMP team: one contiguous share each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/threads/thread_limit.h"

namespace autograph {

/// Work below which a second thread costs more than it gains, in units of one f32 element that is loaded, added to and
/// stored. Entering and leaving a team of two takes 1 to 3 us while its threads still spin, the time of about this many
/// elements (bench_kernels add --threads 2 shows it).
constexpr int64_t kMinWorkPerThread = 16384;

/// How many of `threads` are worth using for this much work.
inline int useful_threads(int threads, int64_t work) { return work >= 2 * kMinWorkPerThread ? threads : 1; }

/// Calls share(begin, end, thread) so that the shares cover [0, count) once, on at most `team` threads at the same
/// time. `share` must not throw. Without OpenMP everything runs on the caller's thread.
template <class Share>
void run_shares(int shares, [[maybe_unused]] int team, int64_t count, const Share& share) {
  const auto run = [&](int64_t t) { share(count * t / shares, count * (t + 1) / shares, static_cast<int>(t)); };
  if (team <= 1) {
    for (int t = 0; t < shares; ++t) run(t);
    return;
  }
  // The loop runs over shares, not over a team: OpenMP may give fewer threads than it was asked for.
#pragma omp parallel for num_threads(team) schedule(static, 1)
  for (int t = 0; t < shares; ++t) run(t);
}

/// See run_shares(): one share for each of `threads`, or as many as the calling thread may use now.
template <class Share>
void for_shares(int threads, int64_t count, const Share& share) {
  threads = static_cast<int>(std::min<int64_t>(threads_allowed(threads), count));
  run_shares(threads, threads, count, share);
}

/// As for_shares(), but with shares that are the same however many threads may be used now: for kernels that add up
/// what the shares give, whose results would change with the load of the machine.
template <class Share>
void for_fixed_shares(int threads, int64_t count, const Share& share) {
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  run_shares(threads, threads_allowed(threads), count, share);
}

}  // namespace autograph

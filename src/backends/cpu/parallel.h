// Splitting work over the threads of an OpenMP team: one contiguous share each.
#pragma once

#include <algorithm>
#include <cstdint>

namespace autograph {

/// Work below which a second thread costs more than it gains, in units of one f32 element that is loaded, added to and
/// stored. Entering and leaving a team of two takes 1 to 3 us while its threads still spin, the time of about this many
/// elements (bench_kernels add --threads 2 shows it).
constexpr int64_t kMinWorkPerThread = 16384;

/// How many of `threads` are worth using for this much work.
inline int useful_threads(int threads, int64_t work) { return work >= 2 * kMinWorkPerThread ? threads : 1; }

/// Calls share(begin, end, thread) so that the shares cover [0, count) once; `threads` > 1 runs them at the same time.
/// `share` must not throw. Without OpenMP everything runs on the caller's thread.
template <class Share>
void for_shares(int threads, int64_t count, const Share& share) {
  threads = static_cast<int>(std::min<int64_t>(threads, count));
  if (threads <= 1) {
    if (count > 0) share(int64_t{0}, count, 0);
    return;
  }
  // The loop runs over shares, not over a team: OpenMP may give fewer threads than it was asked for.
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; ++t) share(count * t / threads, count * (t + 1) / threads, t);
}

}  // namespace autograph

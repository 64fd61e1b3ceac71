// Timing for the programs in this folder, in CPU time: what they measure runs on one thread, and CPU time does not
// count the waiting on a machine that does other work as well.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace autograph {

/// Milliseconds of CPU time that `f()` takes.
template <class F>
double milliseconds(F&& f) {
  const std::clock_t start = std::clock();
  f();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// The least of `rounds` measurements: what the code takes when nothing else disturbs it.
template <class F>
double best_milliseconds(int rounds, F&& f) {
  double best = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds; ++round) best = std::min(best, milliseconds(f));
  return best;
}

}  // namespace autograph

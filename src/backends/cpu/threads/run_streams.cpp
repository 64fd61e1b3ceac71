// Streams on the processors of this machine.
//
// With one thread each they are threads of the OpenMP team that also serves the steps between stages: threads of our
// own would share the processors with those of the team, which go on spinning for a while. Streams with several threads
// have teams of their own, which takes threads of our own.
#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>

#include "backends/cpu/cpu_kernels.h"
#include "backends/cpu/threads/pin_threads.h"
#include "runtime/threads/stream_threads.h"

namespace autograph {
namespace {

// The thread sanitizer knows nothing of how the threads of a team wait for each other.
#if defined(_OPENMP) && !defined(__SANITIZE_THREAD__)
constexpr bool kHasTeams = true;

bool run_in_team(int streams, FunctionRef<void(int)> work) {
  bool has_run = false;
  // As many threads as a wide step has: a smaller team would end the others, and the next step start them again.
  const int team = std::max(streams, omp_get_max_threads());
#pragma omp parallel num_threads(team)
  {
    const int thread = omp_get_thread_num();
    // OpenMP may give fewer threads than it was asked for.
    const bool is_enough = omp_get_num_threads() >= streams;
    if (is_enough && thread < streams) {
      set_cpu_threads(1);
      work(thread);
    }
    if (thread == 0) has_run = is_enough;
  }
  return has_run;
}
#else
constexpr bool kHasTeams = false;

bool run_in_team(int, FunctionRef<void(int)>) { return false; }
#endif

bool is_in_team() {
#ifdef _OPENMP
  return omp_in_parallel() != 0;
#else
  return false;
#endif
}

}  // namespace

bool run_cpu_streams(int streams, int threads, FunctionRef<void(int)> work) {
  if (kHasTeams && threads == 1 && !is_in_team()) return run_in_team(streams, work);
  const StreamPins pins;
  const auto work_in_place = [&](int stream) {
    if (stream > 0) pins.bind_stream(stream, threads);
    work(stream);
    if (stream > 0) pins.release_stream();
  };
  return StreamThreads::of_process().run(streams, threads, set_cpu_threads, work_in_place);
}

}  // namespace autograph

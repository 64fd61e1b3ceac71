// Teams of OpenMP live on between runs, so that their threads are bound when a caller first asks; the caller itself
// gets its processors back after each run.
#include "backends/cpu/threads/pin_threads.h"

#include <algorithm>
#include <span>

namespace autograph {
namespace {

// Of the calling thread, while it is bound: what it could use before.
struct Before {
  cpu_set_t mask;
  std::vector<int> cpus;  // in `mask`; empty: not bound
};
thread_local Before before;

// The processors that the calling thread's team was bound to last.
thread_local std::vector<int> bound_team;

void bind(int cpu) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  sched_setaffinity(0, sizeof mask, &mask);
}

void bind_team(std::span<const int> cpus) {
  if (!std::equal(cpus.begin(), cpus.end(), bound_team.begin(), bound_team.end())) {
    const auto threads = static_cast<int>(cpus.size());
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) bind(cpus[static_cast<size_t>(t)]);
    bound_team.assign(cpus.begin(), cpus.end());
  }
  bind(cpus[0]);
}

}  // namespace

void pin_cpu_threads(int threads) {
  if (!before.cpus.empty() || sched_getaffinity(0, sizeof before.mask, &before.mask) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before.mask)) before.cpus.push_back(cpu);
  }
  const auto count = static_cast<size_t>(threads);
  // Threads that have to share processors are better off where the system puts them.
  if (count > before.cpus.size()) {
    before.cpus.clear();
  } else {
    bind_team(std::span(before.cpus).first(count));
  }
}

void unpin_cpu_thread() {
  if (before.cpus.empty()) return;
  sched_setaffinity(0, sizeof before.mask, &before.mask);
  before.cpus.clear();
}

StreamPins::StreamPins() {
  if (before.cpus.empty()) return;
  mask_ = &before.mask;
  cpus_ = &before.cpus;
}

void StreamPins::bind_stream(int stream, int threads) const {
  if (!mask_) return;
  const auto count = static_cast<size_t>(threads);
  const size_t begin = static_cast<size_t>(stream) * count;
  if (begin + count <= cpus_->size()) {
    bind_team(std::span(*cpus_).subspan(begin, count));
  } else {
    release_stream();  // threads begin where the thread that started them was bound
  }
}

void StreamPins::release_stream() const {
  if (mask_) sched_setaffinity(0, sizeof *mask_, mask_);
}

}  // namespace autograph

#include "runtime/threads/cpu_count.h"

#ifdef _OPENMP
#include <omp.h>
#endif
#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <thread>

#include "runtime/threads/cgroup_file.h"

namespace autograph {

int parse_cpu_quota(std::string_view text) {
  std::istringstream stream{std::string(text)};
  int64_t quota = 0;
  int64_t period = 0;
  if (!(stream >> quota >> period) || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>((quota - 1) / period + 1, 1 << 20));
}

int allowed_cpu_count() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) count = CPU_COUNT(&mask);
#ifdef _OPENMP
  // With OMP_PROC_BIND the first thread is bound to one processor before main() begins; OpenMP knows what there was.
  count = std::max(count, omp_get_num_procs());
#endif
  return std::max(count, 1);
}

int usable_cpu_count() {
  const int count = allowed_cpu_count();
  const int quota = parse_cpu_quota(read_cgroup_file("cpu.max"));
  return quota > 0 ? std::min(count, quota) : count;
}

}  // namespace autograph

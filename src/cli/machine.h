// What the operating system says about this machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace autograph::cli {

/// Instruction set extensions that matter for kernels, of this processor.
std::vector<std::string> isa_extensions();

/// Model name of the processor; "" when it does not say.
std::string cpu_name();

/// Processors: those there are, those this process may run on, and the CPU quota of its cgroup (0: no quota).
struct CpuLimits {
  int64_t present = 0;
  int64_t allowed = 0;
  double quota = 0;
};
CpuLimits cpu_limits();

/// Memory in bytes: of the machine, free for new work, and the limit of the cgroup (0: none).
struct MemoryLimits {
  int64_t total = 0;
  int64_t available = 0;
  int64_t limit = 0;
};
MemoryLimits memory_limits();

/// Largest resident size of this process so far, in bytes.
int64_t peak_resident_bytes();

/// Where measurements are kept.
struct CacheState {
  std::string folder;   ///< "": there is none.
  std::string problem;  ///< Why nothing can be kept there; "" where it can.
};
/// `folder`: as the user gave it; "": the usual one. Makes nothing.
CacheState cache_state(const std::string& folder);

}  // namespace autograph::cli

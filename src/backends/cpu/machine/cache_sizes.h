// How large the caches of this processor are.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace autograph {

/// Bytes of a level as sysconf() names it, for example _SC_LEVEL2_CACHE_SIZE; `otherwise` where it does not say.
inline size_t cache_bytes(int name, size_t otherwise) {
  const long bytes = sysconf(name);
  return bytes > 0 ? static_cast<size_t>(bytes) : otherwise;
}

/// Bytes of the third level that a core can use; 0 where there is none. The kernel knows: sysconf() adds up all the
/// third levels of AMD's processors.
inline size_t third_cache_bytes() {
  constexpr size_t kKibi = 1024;
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  size_t kibibytes = 0;
  return file >> kibibytes ? kibibytes * kKibi : cache_bytes(_SC_LEVEL3_CACHE_SIZE, 0);
}

}  // namespace autograph

// How many CPUs this process may use.
#pragma once

#include <string_view>

namespace autograph {

/// CPUs in the process's affinity mask, or fewer when a cgroup quota allows fewer; at least 1.
int usable_cpu_count();

/// CPUs that a cgroup v2 `cpu.max` ("200000 100000") allows, rounded up; 0 when it sets no limit or is malformed.
int parse_cpu_quota(std::string_view text);

}  // namespace autograph

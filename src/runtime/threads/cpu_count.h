// How many processors a cgroup allows.
#pragma once

#include <string_view>

#include "autograph/cpu_count.h"

namespace autograph {

/// CPUs that a cgroup v2 `cpu.max` ("200000 100000") allows, rounded up; 0 when it sets no limit or is malformed.
int parse_cpu_quota(std::string_view text);

}  // namespace autograph

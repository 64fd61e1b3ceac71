// Reads a limit of the control group that this process is in (version 2, falling back to the mount's root).
#pragma once

#include <string>

namespace autograph {

/// Contents of `name` ("memory.max") in the process's cgroup; "" when there is none.
std::string read_cgroup_file(const std::string& name);

}  // namespace autograph

// How many processors this process may use.
#pragma once

namespace autograph {

/// Processors that the affinity mask of this process leaves, at least 1.
int allowed_cpu_count();

/// The same, or fewer when a cgroup quota allows fewer: the threads of a run where CompileOptions::threads is 0.
int usable_cpu_count();

}  // namespace autograph

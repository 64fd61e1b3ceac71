// What kernels took when they were measured.
#pragma once

#include <map>
#include <string>

namespace autograph {

/// Measured microseconds of kernels and of changes of layout, by what was measured.
using KernelTimes = std::map<std::string, double>;

}  // namespace autograph

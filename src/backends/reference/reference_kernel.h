// The reference backend: one kernel that calls an op's reference implementation. It defines what is true.
#pragma once

#include "runtime/kernel_catalog.h"

namespace autograph {

/// Takes every op with a reference or scalar formula.
KernelDef reference_kernel();

}  // namespace autograph

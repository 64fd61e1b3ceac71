// The reference backend: one kernel that calls an op's reference implementation. It defines what is true.
#pragma once

#include "autograph/kernel.h"

namespace autograph {

/// Takes every op with a reference or scalar formula, for the end of a device's list of kernels. It computes on the
/// host; where the device has memory of its own it waits for the stream and copies there and back.
KernelDef reference_kernel();

}  // namespace autograph

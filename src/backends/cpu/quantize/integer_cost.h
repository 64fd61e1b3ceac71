// What kernels of products and convolutions of integers are compared by where nothing was measured.
#pragma once

#include <vector>

#include "autograph/kernel.h"

namespace autograph {

/// The one form of a kernel that does so many operations in a microsecond on each thread.
std::vector<KernelVariant> integer_kernel_variants(const KernelCall& call, double flops_per_us_and_thread);

}  // namespace autograph

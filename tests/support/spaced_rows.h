// Kernels that can leave gaps between the rows of their output.
#pragma once

#include <string>

#include "autograph/kernel.h"

namespace autograph {

/// Runs a kernel with spaced_row_bytes() once more, with room between the rows of its only output, and says where that
/// differs from what `args` have as output, or what it wrote besides; "" for all other kernels.
std::string spaced_rows_complaint(const Kernel& kernel, const KernelArgs& args, size_t output_bytes);

}  // namespace autograph

// Kernels that have operands in other layouts, for callers who have row-major tensors alone: reorders around them.
#pragma once

#include <memory>

#include "autograph/kernel.h"

namespace autograph {

/// Microseconds that a reorder takes, roughly.
double estimated_reorder_us(const ReorderCall& call);

/// The same of all reorders between row-major operands and those of a variant; 0 where these are row-major.
double estimated_reorders_us(const KernelCall& call, const KernelVariant& variant);

/// `kernel`, which was prepared for the call in this variant, with the reorders; itself where there are none.
std::unique_ptr<Kernel> with_row_major_operands(const KernelCatalog& catalog, const KernelCall& call,
                                                const KernelVariant& variant, std::unique_ptr<Kernel> kernel);

}  // namespace autograph

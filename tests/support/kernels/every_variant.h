// Checks of the variants of a kernel, whatever layouts they read and write.
#pragma once

#include "support/compare.h"
#include "support/kernels/run_kernel.h"

namespace autograph {

/// The CPU kernel of this name for `op`; without a name when this build has none.
KernelDef cpu_kernel(std::string_view name, std::string_view op);

/// Every variant that `def` has for a call of f32 whose weights are known gives the reference's outputs; it must
/// have some. A kernel without variants is one itself.
void expect_every_variant(const KernelDef& def, const OpDef& op, const OpSample& sample, int threads,
                          const FloatTolerance& tolerance = {1e-4, 1e-4});

/// Every variant packs other weights in place of those it was prepared for, and then gives the reference's outputs for
/// these. All inputs of floats but the first are weights.
void expect_every_variant_renews(const KernelDef& def, const OpDef& op, const OpSample& sample, int threads,
                                 const FloatTolerance& tolerance = {1e-3, 1e-4});

/// The same as expect_every_variant() for all of the CPU's kernels that are made for `op` and take the call; there must
/// be one.
void expect_every_kernel(const OpDef& op, const OpSample& sample, int threads, const FloatTolerance& tolerance);

}  // namespace autograph

// Fused bodies that begin with a product or a convolution, which a library computes: what follows is a generated kernel
// that works in place. Beside it stands the one generated kernel for the whole; measurements choose.
#pragma once

#include "autograph/kernel.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// "" when the body begins with `producer`, which the library's kernel for that op takes, else the reason why not.
std::string why_not_with_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                                  const KernelDef& library);

/// Those of the library for the producer.
std::vector<KernelVariant> variants_with_epilogue(const KernelCall& call, const OpDef& producer,
                                                  const KernelDef& library);

/// Both kernels.
Prepared prepare_with_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                               const KernelDef& library);

}  // namespace autograph::cuda

// Kernels made of generated programs.
#pragma once

#include "autograph/kernel.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/opencl/machine.h"

namespace autograph::opencl {

/// The program for the call, built for the machine.
Prepared prepare_generated(const Machine& machine, const KernelCall& call);

}  // namespace autograph::opencl

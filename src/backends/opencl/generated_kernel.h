// Kernels made of generated programs.
#pragma once

#include "autograph/kernel.h"
#include "backends/gpu/emit/emitted.h"
#include "backends/opencl/machine.h"

namespace autograph::opencl {

/// "" when a program can be written for the call, else the reason why not.
std::string why_not_generated(const Machine& machine, const KernelCall& call);

/// Its program, built for the machine.
Prepared prepare_generated(const Machine& machine, const KernelCall& call);

}  // namespace autograph::opencl

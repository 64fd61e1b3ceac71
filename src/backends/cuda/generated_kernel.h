// Kernels made of generated programs.
#pragma once

#include "autograph/kernel.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// "" when a program can be written for the call, else the reason why not.
std::string why_not_generated(const Machine& machine, const KernelCall& call);

/// Its program, built for the machine.
Prepared prepare_generated(const Machine& machine, const KernelCall& call);

}  // namespace autograph::cuda

// Kernels made of generated programs.
#pragma once

#include "autograph/kernel.h"
#include "backends/cuda/machine.h"
#include "backends/gpu/emit/emitted.h"

namespace autograph::cuda {

/// The program for the call, built for the machine.
Prepared prepare_generated(const Machine& machine, const KernelCall& call);

/// The ways in which it does that, with estimates where there are several or a library may do it, too.
std::vector<KernelVariant> generated_variants(const Machine& machine, const KernelCall& call);

/// Builds a program that was written for the call, which refused nothing.
Prepared prepare_emitted(const Machine& machine, const KernelCall& call, gpu::Emitted emitted);

}  // namespace autograph::cuda

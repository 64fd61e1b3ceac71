// Convolutions by cuDNN.
#pragma once

#include "autograph/kernel.h"
#include "autograph/precision.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// "" when cuDNN takes the call, of conv, else the reason why not.
std::string why_not_dnn_conv(const Machine& machine, const KernelCall& call);

/// The first algorithms that its heuristics name, and one that adds the bias by itself. `precision`: in what it may
/// multiply.
std::vector<KernelVariant> dnn_conv_variants(const Machine& machine, const KernelCall& call, Precision precision);

/// The kernel of one of them.
Prepared prepare_dnn_conv(const Machine& machine, const KernelCall& call, Precision precision);

}  // namespace autograph::cuda

// Matrix products by cuBLASLt.
#pragma once

#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "autograph/precision.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// "" when cuBLASLt takes the call, of matmul or gemm, else the reason why not.
std::string why_not_lt_product(const KernelCall& call);

/// The first algorithms that its heuristics name. `precision`: in what it may multiply.
std::vector<KernelVariant> lt_product_variants(const Machine& machine, const KernelCall& call, Precision precision);

/// The kernel of one of them.
Prepared prepare_lt_product(const Machine& machine, const KernelCall& call, Precision precision);

/// The same for a fused body that begins with `producer`, all of it by an epilogue of the library. None where it has no
/// epilogue that computes what the body does.
std::vector<KernelVariant> lt_epilogue_variants(const Machine& machine, const KernelCall& call, const OpDef& producer,
                                                Precision precision);

/// Is it one of these?
bool is_lt_epilogue(const KernelVariant* variant);

Prepared prepare_lt_epilogue(const Machine& machine, const KernelCall& call, const OpDef& producer,
                             Precision precision);

}  // namespace autograph::cuda

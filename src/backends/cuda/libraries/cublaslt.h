// Matrix products by cuBLASLt, from a library that is looked for when the program runs.
#pragma once

#include <string>
#include <vector>

#include "autograph/kernel.h"
#include "autograph/precision.h"
#include "backends/cuda/machine.h"

namespace autograph::cuda {

/// "cublasLt 13.1.0", or "no cublasLt".
std::string cublaslt_version_text();

/// "" when cuBLASLt takes the call, of matmul or gemm, else the reason why not.
std::string why_not_lt_product(const Machine& machine, const KernelCall& call);

/// The first algorithms that its heuristics name. `precision`: in what it may multiply.
std::vector<KernelVariant> lt_product_variants(const Machine& machine, const KernelCall& call, Precision precision);

/// The kernel of one of them.
Prepared prepare_lt_product(const Machine& machine, const KernelCall& call, Precision precision);

}  // namespace autograph::cuda

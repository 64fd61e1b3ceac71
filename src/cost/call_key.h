// Calls of kernels as keys of what is remembered about them.
#pragma once

#include <string>

#include "autograph/kernel.h"

namespace autograph {

/// Op, attributes, types, which inputs are constants, threads: what the time of a call depends on.
std::string call_key(const KernelCall& call);

/// "cpu.conv_onednn jit:avx512_core blocked16 3,0,0,": a candidate with the layouts that it reads.
std::string candidate_key(const KernelCandidate& candidate);

}  // namespace autograph

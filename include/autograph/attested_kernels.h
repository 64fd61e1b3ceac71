// Kernels that were run on this machine and compared with the reference before they are trusted.
#pragma once

#include <cstdint>
#include <vector>

#include "autograph/compile.h"

namespace autograph {

/// What attestation has found so far with this build.
struct AttestedKernels {
  int64_t trusted = 0;
  std::vector<RefusedKernel> refused;
};

/// Of the device, precision and cache folder of `options`.
AttestedKernels attested_kernels(const CompileOptions& options = {});

}  // namespace autograph

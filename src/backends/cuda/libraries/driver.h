// NVIDIA's driver, from a libcuda that is looked for when the program runs.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/libraries/abi.h"

namespace autograph::cuda {

/// Its functions.
struct Driver {
  AG_CUDA_FUNCTIONS(AG_CUDA_MEMBER)
  int version = 0;   ///< Of CUDA: 13000 for 13.0.
  std::string path;  ///< Of the library.
};

/// The driver of this machine, loaded and initialised once; null where there is none, with the reason in
/// why_no_driver().
const Driver* find_driver();
const std::string& why_no_driver();

/// The same. Throws DeviceError that says what was looked for and where.
const Driver& driver();

/// "13.0" for 13000.
std::string version_text(int version);

/// "CUDA_ERROR_OUT_OF_MEMORY (2): out of memory".
std::string error_text(CUresult code);

/// Throws DeviceError "[cuda] what: ..." unless `code` is CUDA_SUCCESS.
void check(CUresult code, std::string_view what);

}  // namespace autograph::cuda

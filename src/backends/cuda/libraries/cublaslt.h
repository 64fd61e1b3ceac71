// cuBLASLt, from a library that is looked for when the program runs.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/libraries/abi.h"

namespace autograph::cuda {

/// Its functions.
struct CublasLt {
  AG_CUBLASLT_FUNCTIONS(AG_CUDA_MEMBER)

  /// Throws DeviceError "[cuda] what: ..." unless `code` is CUBLAS_STATUS_SUCCESS.
  void check(cublasStatus_t code, std::string_view what) const;
};

/// Null where it is not found, with the reason in why_no_cublaslt().
const CublasLt* find_cublaslt();
const std::string& why_no_cublaslt();

/// The same, where it is known to be there.
const CublasLt& cublaslt();

/// "cublasLt 13.1.0", or "no cublasLt".
std::string cublaslt_version_text();

}  // namespace autograph::cuda

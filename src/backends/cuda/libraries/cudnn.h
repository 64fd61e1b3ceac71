// cuDNN, from a library that is looked for when the program runs.
#pragma once

#include <string>
#include <string_view>

#include "backends/cuda/libraries/abi.h"

namespace autograph::cuda {

/// Its functions.
struct Cudnn {
  AG_CUDNN_FUNCTIONS(AG_CUDA_MEMBER)
  std::string path;

  /// A handle whose work goes to `stream`; the context must be current.
  cudnnHandle_t new_handle(CUstream stream) const;
  void destroy_handle(cudnnHandle_t handle) const { cudnnDestroy(handle); }
  /// Throws DeviceError "[cuda] what: ..." unless `code` is CUDNN_STATUS_SUCCESS.
  void check(cudnnStatus_t code, std::string_view what) const;
};

/// Null where it is not found, with the reason in why_no_cudnn().
const Cudnn* find_cudnn();
const std::string& why_no_cudnn();

/// The same, where it is known to be there.
const Cudnn& cudnn();

/// "cudnn 9.19.0", or "no cudnn".
std::string cudnn_version_text();

}  // namespace autograph::cuda

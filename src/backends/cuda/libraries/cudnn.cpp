#include "backends/cuda/libraries/cudnn.h"

#include <fmt/core.h>

#include "autograph/error.h"
#include "backends/cuda/libraries/driver.h"
#include "backends/cuda/libraries/libraries.h"
#include "base/check.h"

namespace autograph::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"};

std::string load(void* handle, Cudnn& table) {
  std::string missing;
  AG_CUDNN_FUNCTIONS(AG_CUDA_LOAD)
  if (!missing.empty()) return missing;
  const auto built_for = static_cast<int>(table.cudnnGetCudartVersion());
  if (built_for / 1000 <= driver().version / 1000) return "";
  return fmt::format("is for CUDA {}, the driver for {}", version_text(built_for), version_text(driver().version));
}

struct LoadedCudnn {
  LoadedCudnn() {
    const Library library = open_library(kLibraries, [&](void* handle) {
      cudnn = {};
      return load(handle, cudnn);
    });
    is_there = static_cast<bool>(library);
    cudnn.path = library.path;
    if (!is_there) why_not = "cuDNN was not found (looked for " + library.looked_for + ")";
  }
  Cudnn cudnn;
  std::string why_not;
  bool is_there = false;
};

const LoadedCudnn& loaded() {
  static const LoadedCudnn kLoaded;
  return kLoaded;
}

}  // namespace

cudnnHandle_t Cudnn::new_handle(CUstream stream) const {
  cudnnHandle_t handle = nullptr;
  check(cudnnCreate(&handle), "cudnnCreate");
  check(cudnnSetStream(handle, stream), "cudnnSetStream");
  return handle;
}

void Cudnn::check(cudnnStatus_t code, std::string_view what) const {
  if (code != CUDNN_STATUS_SUCCESS) {
    throw DeviceError(fmt::format("[cuda] {}: {} ({})", what, cudnnGetErrorString(code), code));
  }
}

const Cudnn* find_cudnn() { return loaded().is_there ? &loaded().cudnn : nullptr; }

const std::string& why_no_cudnn() { return loaded().why_not; }

const Cudnn& cudnn() {
  AG_CHECK(find_cudnn(), "[cuda] {}", why_no_cudnn());
  return *find_cudnn();
}

// 91900 is 9.19.0, and 8904 is 8.9.4.
std::string cudnn_version_text() {
  const Cudnn* dnn = find_cudnn();
  if (!dnn) return "no cudnn";
  const size_t version = dnn->cudnnGetVersion();
  const size_t major = version >= 10000 ? 10000 : 1000;
  return fmt::format("cudnn {}.{}.{}", version / major, version % major / 100, version % 100);
}

}  // namespace autograph::cuda

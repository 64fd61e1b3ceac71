#include "backends/cuda/libraries/cublaslt.h"

#include <fmt/core.h>

#include "autograph/error.h"
#include "backends/cuda/libraries/driver.h"
#include "backends/cuda/libraries/libraries.h"
#include "base/check.h"

namespace autograph::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};

std::string load(void* handle, CublasLt& table) {
  std::string missing;
  AG_CUBLASLT_FUNCTIONS(AG_CUDA_LOAD)
  if (!missing.empty()) return missing;
  const auto major = static_cast<int>(table.cublasLtGetVersion() / 10000);
  if (major <= driver().version / 1000) return "";
  return fmt::format("is for CUDA {}, the driver for {}", major, version_text(driver().version));
}

struct LoadedCublasLt {
  LoadedCublasLt() {
    const Library library = open_library(kLibraries, [&](void* handle) {
      lt = {};
      return load(handle, lt);
    });
    is_there = static_cast<bool>(library);
    if (!is_there) why_not = "cuBLASLt was not found (looked for " + library.looked_for + ")";
  }
  CublasLt lt;
  std::string why_not;
  bool is_there = false;
};

const LoadedCublasLt& loaded() {
  static const LoadedCublasLt kLoaded;
  return kLoaded;
}

}  // namespace

void CublasLt::check(cublasStatus_t code, std::string_view what) const {
  if (code != CUBLAS_STATUS_SUCCESS) {
    throw DeviceError(fmt::format("[cuda] {}: {} ({})", what, cublasLtGetStatusName(code), code));
  }
}

const CublasLt* find_cublaslt() { return loaded().is_there ? &loaded().lt : nullptr; }

const std::string& why_no_cublaslt() { return loaded().why_not; }

const CublasLt& cublaslt() {
  AG_CHECK(find_cublaslt(), "[cuda] {}", why_no_cublaslt());
  return *find_cublaslt();
}

std::string cublaslt_version_text() {
  const CublasLt* lt = find_cublaslt();
  if (!lt) return "no cublasLt";
  const size_t version = lt->cublasLtGetVersion();
  return fmt::format("cublasLt {}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace autograph::cuda

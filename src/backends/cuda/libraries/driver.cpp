#include "backends/cuda/libraries/driver.h"

#include <fmt/core.h>

#include <algorithm>

#include "autograph/error.h"
#include "backends/cuda/libraries/libraries.h"

namespace autograph::cuda {
namespace {

constexpr const char* kLibraries[] = {"libcuda.so.1", "libcuda.so"};
// All functions are there from 11.4 on; older compilers than those of CUDA 12 are not looked for.
constexpr int kOldest = 12000;

std::string load(void* handle, Driver& table) {
  std::string missing;
  AG_CUDA_FUNCTIONS(AG_CUDA_LOAD)
  if (!missing.empty()) return missing;
  const CUresult code = table.cuDriverGetVersion(&table.version);
  if (code != CUDA_SUCCESS) return fmt::format("cuDriverGetVersion fails with {}", code);
  if (table.version >= kOldest) return "";
  return fmt::format("is a driver for CUDA {}, expected {} or later; install a newer driver (535 or later)",
                     version_text(table.version), version_text(kOldest));
}

struct Loaded {
  Loaded() {
    const Library library = open_library(kLibraries, [&](void* handle) {
      driver = {};
      return load(handle, driver);
    });
    if (!library) {
      why_not = fmt::format("no driver of NVIDIA found (looked for {})", library.looked_for);
      return;
    }
    driver.path = library.path;
    const CUresult code = driver.cuInit(0);
    is_there = code == CUDA_SUCCESS;
    if (!is_there) {
      const char* name = nullptr;
      driver.cuGetErrorName(code, &name);
      why_not = fmt::format(
          "the driver is there ({}, CUDA {}), but cuInit fails with {} ({}); is there a GPU, and may "
          "this process use it? See nvidia-smi",
          driver.path, version_text(driver.version), name ? name : "an error", code);
    }
  }

  Driver driver;
  std::string why_not;
  bool is_there = false;
};

const Loaded& loaded() {
  static const Loaded kLoaded;
  return kLoaded;
}

}  // namespace

const Driver* find_driver() { return loaded().is_there ? &loaded().driver : nullptr; }

const std::string& why_no_driver() { return loaded().why_not; }

const Driver& driver() {
  if (const Driver* driver = find_driver()) return *driver;
  throw DeviceError("[cuda] driver: " + why_no_driver());
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

std::string error_text(CUresult code) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().cuGetErrorName(code, &name);
  driver().cuGetErrorString(code, &text);
  return fmt::format("{} ({}){}{}", name ? name : "error", code, text ? ": " : "", text ? text : "");
}

void check(CUresult code, std::string_view what) {
  if (code != CUDA_SUCCESS) throw DeviceError(fmt::format("[cuda] {}: {}", what, error_text(code)));
}

}  // namespace autograph::cuda

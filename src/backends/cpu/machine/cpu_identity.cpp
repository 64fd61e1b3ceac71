// What measured times depend on: the processor, oneDNN, and our own kernels.
#include <fmt/core.h>

#include <fstream>
#include <string>

#include "backends/cpu/cpu_kernels.h"

#ifdef AG_HAS_ONEDNN
#include <oneapi/dnnl/dnnl_version.h>
#endif

namespace autograph {
namespace {

// Raised whenever kernels get faster or slower, so that old measurements are not believed.
constexpr int kKernelsRevision = 7;

std::string read_processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

// Asked for every plan.
const std::string& processor() {
  static const std::string kProcessor = read_processor();
  return kProcessor;
}

}  // namespace

std::string cpu_identity() {
#ifdef AG_HAS_ONEDNN
  const std::string onednn = fmt::format("oneDNN {}.{}.{}", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR, DNNL_VERSION_PATCH);
#else
  const std::string onednn = "no oneDNN";
#endif
  return fmt::format("{}; {}; kernels {}", processor(), onednn, kKernelsRevision);
}

}  // namespace autograph

#include "backends/cuda/libraries/nvrtc.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "autograph/error.h"
#include "backends/cuda/libraries/driver.h"
#include "backends/cuda/libraries/libraries.h"
#include "base/check.h"

namespace autograph::cuda {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraries[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

// The compiler's own library of built-in functions lies beside it, where the loader does not look in Python packages.
void load_builtins(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator it(fs::path(path).parent_path(), error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("libnvrtc-builtins.so.")) ::dlopen(it->path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

}  // namespace

Compiler::Compiler(int driver_version) {
  const Library library = open_library(kLibraries, [&](void* handle) { return load(handle, driver_version); });
  if (library) {
    path_ = library.path;
    load_builtins(path_);
  } else {
    why_not_ = fmt::format(
        "the run-time compiler NVRTC was not found (looked for {}); it is part of the CUDA toolkit, and of the Python "
        "package nvidia-cuda-nvrtc; AUTOGRAPH_CUDA_PATH may name its folder",
        library.looked_for);
  }
}

std::string Compiler::load(void* handle, int driver_version) {
  std::string missing;
  Functions table;
  AG_NVRTC_FUNCTIONS(AG_CUDA_LOAD)
  if (!missing.empty()) return missing;
  int major = 0;
  int minor = 0;
  if (table.nvrtcVersion(&major, &minor) != NVRTC_SUCCESS) return "nvrtcVersion fails";
  if (major > driver_version / 1000) {
    return fmt::format("compiles for CUDA {}.{}, the driver takes code up to CUDA {}", major, minor,
                       version_text(driver_version));
  }
  int count = 0;
  table.nvrtcGetNumSupportedArchs(&count);
  architectures_.assign(static_cast<size_t>(std::max(count, 0)), 0);
  table.nvrtcGetSupportedArchs(architectures_.data());
  nvrtc_ = table;
  version_ = major * 1000 + minor * 10;
  return "";
}

bool Compiler::knows(int architecture) const {
  return std::find(architectures_.begin(), architectures_.end(), architecture) != architectures_.end();
}

std::string Compiler::architectures() const {
  if (architectures_.empty()) return "none";
  const auto [low, high] = std::minmax_element(architectures_.begin(), architectures_.end());
  return fmt::format("sm_{}..sm_{}", *low, *high);
}

void Compiler::check(nvrtcResult code, const char* what) const {
  if (code != NVRTC_SUCCESS) {
    throw DeviceError(fmt::format("[cuda] {}: {} ({})", what, nvrtc_.nvrtcGetErrorString(code), code));
  }
}

// Denormals, NaN and infinities mean what ops say: no fast math. Products and sums may be joined, as in OpenCL.
std::string Compiler::options(int architecture) {
  return fmt::format("--gpu-architecture=sm_{} --std=c++17 --fmad=true", architecture);
}

std::string Compiler::compile(const std::string& source, int architecture) const {
  nvrtcProgram program = nullptr;
  check(nvrtc_.nvrtcCreateProgram(&program, source.c_str(), "generated.cu", 0, nullptr, nullptr), "nvrtcCreateProgram");
  struct Destroyer {
    const Functions& nvrtc;
    nvrtcProgram& program;
    ~Destroyer() { nvrtc.nvrtcDestroyProgram(&program); }
  } const destroyer{nvrtc_, program};
  const std::string target = fmt::format("--gpu-architecture=sm_{}", architecture);
  const std::array<const char*, 3> list{target.c_str(), "--std=c++17", "--fmad=true"};
  const nvrtcResult code = nvrtc_.nvrtcCompileProgram(program, static_cast<int>(list.size()), list.data());
  if (code != NVRTC_SUCCESS) {
    size_t bytes = 0;
    nvrtc_.nvrtcGetProgramLogSize(program, &bytes);
    std::string log(bytes, '\0');
    if (bytes > 0) nvrtc_.nvrtcGetProgramLog(program, log.data());
    AG_CHECK(code == NVRTC_SUCCESS, "[cuda] program: {}: {}\n{}", nvrtc_.nvrtcGetErrorString(code), log.c_str(),
             source);
  }
  size_t bytes = 0;
  check(nvrtc_.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize");
  std::string cubin(bytes, '\0');
  check(nvrtc_.nvrtcGetCUBIN(program, cubin.data()), "nvrtcGetCUBIN");
  return cubin;
}

const Compiler& compiler() {
  static const Compiler kCompiler(driver().version);
  return kCompiler;
}

}  // namespace autograph::cuda

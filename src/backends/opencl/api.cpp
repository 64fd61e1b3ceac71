#include "backends/opencl/api.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include "autograph/error.h"

namespace autograph::opencl {
namespace {

constexpr const char* kLibraries[] = {"libOpenCL.so.1", "libOpenCL.so"};

// The library is never closed: drivers keep threads.
bool load(const char* library, Api& api, std::string& why_not) {
  void* handle = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    why_not += fmt::format("{}{}: {}", why_not.empty() ? "" : "; ", library, ::dlerror());
    return false;
  }
  const char* missing = nullptr;
#define AG_OPENCL_LOAD(name)                                              \
  api.name = reinterpret_cast<decltype(&::name)>(::dlsym(handle, #name)); \
  if (!api.name) missing = #name;
  AG_OPENCL_FUNCTIONS(AG_OPENCL_LOAD)
#undef AG_OPENCL_LOAD
  if (missing) why_not += fmt::format("{}{}: has no {}", why_not.empty() ? "" : "; ", library, missing);
  return !missing;
}

struct Loaded {
  Loaded() : is_there(load_api(kLibraries, api, why_not)) {}
  Api api;
  std::string why_not;
  bool is_there;
};

const Loaded& loaded() {
  static const Loaded kLoaded;
  return kLoaded;
}

}  // namespace

bool load_api(std::span<const char* const> libraries, Api& api, std::string& why_not) {
  for (const char* library : libraries) {
    if (load(library, api, why_not)) return true;
  }
  return false;
}

const Api* find_api() { return loaded().is_there ? &loaded().api : nullptr; }

const Api& api() {
  if (const Api* api = find_api()) return *api;
  throw DeviceError(fmt::format(
      "[opencl] library: not found (looked for {}); install the loader (Debian: ocl-icd-libopencl1) and the "
      "driver of the device (for the processor: pocl-opencl-icd)",
      loaded().why_not));
}

std::string error_name(cl_int code) {
  const auto name = [&] {
    switch (code) {
      case CL_DEVICE_NOT_FOUND: return "CL_DEVICE_NOT_FOUND";
      case CL_DEVICE_NOT_AVAILABLE: return "CL_DEVICE_NOT_AVAILABLE";
      case CL_COMPILER_NOT_AVAILABLE: return "CL_COMPILER_NOT_AVAILABLE";
      case CL_MEM_OBJECT_ALLOCATION_FAILURE: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
      case CL_OUT_OF_RESOURCES: return "CL_OUT_OF_RESOURCES";
      case CL_OUT_OF_HOST_MEMORY: return "CL_OUT_OF_HOST_MEMORY";
      case CL_PROFILING_INFO_NOT_AVAILABLE: return "CL_PROFILING_INFO_NOT_AVAILABLE";
      case CL_BUILD_PROGRAM_FAILURE: return "CL_BUILD_PROGRAM_FAILURE";
      case CL_INVALID_VALUE: return "CL_INVALID_VALUE";
      case CL_INVALID_BUFFER_SIZE: return "CL_INVALID_BUFFER_SIZE";
      case CL_INVALID_BINARY: return "CL_INVALID_BINARY";
      case CL_INVALID_KERNEL_ARGS: return "CL_INVALID_KERNEL_ARGS";
      case CL_INVALID_WORK_GROUP_SIZE: return "CL_INVALID_WORK_GROUP_SIZE";
      case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
      default: return "error";
    }
  };
  return fmt::format("{} ({})", name(), code);
}

void check(cl_int code, std::string_view what) {
  if (code != CL_SUCCESS) throw DeviceError(fmt::format("[opencl] {}: {}", what, error_name(code)));
}

}  // namespace autograph::opencl

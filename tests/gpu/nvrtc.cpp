#include "gpu/nvrtc.h"

#include <dlfcn.h>

#include <array>
#include <filesystem>

#include "backends/cuda/libraries/libraries.h"

namespace autograph {
namespace {

// As in nvrtc.h, which need not be here.
using NvrtcProgram = struct _nvrtcProgram*;
using Create = int (*)(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*);
using Compile = int (*)(NvrtcProgram, int, const char* const*);
using LogSize = int (*)(NvrtcProgram, size_t*);
using Log = int (*)(NvrtcProgram, char*);
using Destroy = int (*)(NvrtcProgram*);

constexpr const char* kLibraries[] = {"libnvrtc.so",
                                      "libnvrtc.so.13",
                                      "libnvrtc.so.12",
                                      "/usr/local/cuda/lib64/libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so.13",
                                      "/usr/local/cuda/lib64/libnvrtc.so.12"};

// As a Python package has it, whose library of built-in functions the loader does not find by itself.
void* open_in(const std::filesystem::path& folder) {
  std::error_code error;
  for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12"}) {
    if (!std::filesystem::exists(folder / name, error)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      const bool is_builtins = entry.path().filename().string().starts_with("libnvrtc-builtins.so.");
      if (is_builtins) ::dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
    }
    if (void* library = ::dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  return nullptr;
}

// "ptxas info : ... 0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads": a line for each kernel. What says
// nothing of it was compiled by a version that does not tell.
bool spills(const std::string& log) {
  const std::string_view words = " bytes spill stores";
  for (size_t at = log.find(words); at != std::string::npos; at = log.find(words, at + 1)) {
    if (at < 2 || log.compare(at - 2, 2, " 0") != 0) return true;
  }
  return false;
}

}  // namespace

Nvrtc::Nvrtc() {
  for (const char* library : kLibraries) {
    library_ = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (library_) return;
  }
  for (const std::string& folder : cuda::library_folders()) {
    library_ = open_in(folder);
    if (library_) return;
  }
}

const Nvrtc& Nvrtc::of_process() {
  static const Nvrtc kNvrtc;
  return kNvrtc;
}

template <class Function>
Function Nvrtc::get(const char* name) const {
  return reinterpret_cast<Function>(::dlsym(library_, name));
}

std::string Nvrtc::why_not(const std::string& source, const std::string& architecture) const {
  NvrtcProgram program = nullptr;
  if (get<Create>("nvrtcCreateProgram")(&program, source.c_str(), "generated.cu", 0, nullptr, nullptr) != 0) {
    return "nvrtcCreateProgram failed";
  }
  const std::string arch = "--gpu-architecture=" + architecture;
  // The assembler tells what each kernel uses.
  const std::array<const char*, 4> options{arch.c_str(), "--std=c++17", "--fmad=true", "--ptxas-options=-v"};
  const int code = get<Compile>("nvrtcCompileProgram")(program, static_cast<int>(options.size()), options.data());
  size_t bytes = 0;
  get<LogSize>("nvrtcGetProgramLogSize")(program, &bytes);
  std::string log(bytes, '\0');
  get<Log>("nvrtcGetProgramLog")(program, log.data());
  const bool has_problem = code != 0 || spills(log);
  const std::string problem = has_problem ? log + "\n" + source : "";
  get<Destroy>("nvrtcDestroyProgram")(&program);
  return problem;
}

}  // namespace autograph

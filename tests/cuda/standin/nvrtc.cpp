// The stand-in of libnvrtc: compiles generated sources with the compiler of the host. Settings: AG_STANDIN_NVRTC
// (12990: the version).
#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "cuda/standin/standin.h"

namespace autograph::cuda {

struct _nvrtcProgram {
  std::string source;
  std::string log;
  std::string code;
};

namespace {

constexpr int kArchitectures[] = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The source with what runs its kernels.
std::string host_source(const std::string& source) {
  static const std::regex kKernel(R"(__global__ void (?:__launch_bounds__\([^)]*\) )?(\w+)\()");
  const bool waits = source.find("BARRIER();") != std::string::npos;
  std::string text = fmt::format("#include \"{}\"\n{}\n", AG_KERNEL_SHIM, source);
  for (std::sregex_iterator it(source.begin(), source.end(), kKernel), end; it != end; ++it) {
    text += fmt::format("STANDIN_KERNEL({}, {})\n", (*it)[1].str(), waits);
  }
  return text;
}

// A folder for the files of one compilation.
class Folder {
 public:
  Folder() {
    path_ = (std::filesystem::temp_directory_path() / "standin.XXXXXX").string();
    if (!::mkdtemp(path_.data())) path_.clear();
  }
  ~Folder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace

#define AG_EXPORT extern "C" AG_STANDIN

AG_EXPORT const char* nvrtcGetErrorString(nvrtcResult code) {
  return code == NVRTC_SUCCESS ? "NVRTC_SUCCESS" : "NVRTC_ERROR_COMPILATION";
}

AG_EXPORT nvrtcResult nvrtcVersion(int* major, int* minor) {
  const char* setting = std::getenv("AG_STANDIN_NVRTC");
  const int version = setting ? std::atoi(setting) : 12990;
  *major = version / 1000;
  *minor = version % 1000 / 10;
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetSupportedArchs(int* list) {
  std::copy(std::begin(kArchitectures), std::end(kArchitectures), list);
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* source, const char*, int,
                                         const char* const*, const char* const*) {
  *program = new _nvrtcProgram{source, "", ""};
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

// Products and sums are not joined: the reference does not either. And nothing may keep what is unloaded.
AG_EXPORT nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  int architecture = 0;
  for (int k = 0; k < count; ++k) std::sscanf(options[k], "--gpu-architecture=sm_%d", &architecture);
  const Folder folder;
  std::ofstream(folder.file("kernel.cpp")) << host_source(program->source);
  const std::string command =
      fmt::format("{} -std=gnu++17 -O1 -w -shared -fPIC -fno-gnu-unique -ffp-contract=off -o {} {} > {} 2>&1",
                  AG_CXX_COMPILER, folder.file("kernel.so"), folder.file("kernel.cpp"), folder.file("log"));
  const int status = std::system(command.c_str());
  program->log = read_file(folder.file("log"));
  if (status != 0 || architecture == 0) return NVRTC_ERROR_COMPILATION;
  program->code = standin::pack_program(architecture, read_file(folder.file("kernel.so")));
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->code.size();
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) {
  std::memcpy(code, program->code.data(), program->code.size());
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return NVRTC_SUCCESS;
}

AG_EXPORT nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return NVRTC_SUCCESS;
}

#define AG_SAME(name, result, parameters) static_assert(std::is_same_v<decltype(&name), result(*) parameters>);
AG_NVRTC_FUNCTIONS(AG_SAME)

}  // namespace autograph::cuda

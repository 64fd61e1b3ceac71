#include "backends/opencl/program_cache.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/check.h"
#include "io/file.h"

namespace autograph::opencl {
namespace {

namespace fs = std::filesystem;

// Denormals, NaN and infinities mean what ops say: no fast math.
constexpr const char* kOptions = "-cl-std=CL1.2";

std::string made_folder(const std::string& folder) {
  std::error_code error;
  if (!folder.empty()) fs::create_directories(folder, error);
  return error ? "" : folder;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// Begins with the hash of the rest: a file that was cut short is no program.
std::string sealed(const std::string& binary) { return to_string(hash_bytes(binary.data(), binary.size())) + binary; }

std::string unsealed(const std::string& text) {
  constexpr size_t kSeal = 32;
  if (text.size() <= kSeal) return "";
  const std::string binary = text.substr(kSeal);
  return sealed(binary) == text ? binary : "";
}

}  // namespace

ProgramCache::ProgramCache(cl_context context, cl_device_id device, std::string identity, std::string folder)
    : context_(context), device_(device), identity_(std::move(identity)), folder_(made_folder(folder)) {}

ProgramCounts ProgramCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

std::shared_ptr<const Program> ProgramCache::get(const std::string& source) {
  const Hash128 key = Hasher().add(source).add(std::string_view(kOptions)).add(identity_).finish();
  {
    const std::lock_guard lock(mutex_);
    if (auto program = programs_[key].lock()) {
      ++counts_.shared;
      return program;
    }
  }
  // Without the lock, which the compiler would hold for long: at worst two threads build the same.
  auto program = build(source, key);
  const std::lock_guard lock(mutex_);
  programs_[key] = program;
  return program;
}

std::shared_ptr<const Program> ProgramCache::build(const std::string& source, const Hash128& key) {
  const std::string path = folder_.empty() ? "" : fmt::format("{}/{}.opencl", folder_, to_string(key));
  cl_program program = path.empty() ? nullptr : from_file(path);
  const bool is_from_file = program != nullptr;
  if (!program) {
    program = from_source(source);
    if (!path.empty()) save(program, path);
  }
  const std::lock_guard lock(mutex_);
  ++(is_from_file ? counts_.from_file : counts_.compiled);
  return std::make_shared<Program>(program, key);
}

// Null where there is none, or the driver does not take it.
cl_program ProgramCache::from_file(const std::string& path) const {
  const std::string binary = unsealed(read_file(path));
  if (binary.empty()) return nullptr;
  const size_t bytes = binary.size();
  const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
  cl_int status = CL_SUCCESS;
  cl_int code = CL_SUCCESS;
  cl_program program = api().clCreateProgramWithBinary(context_, 1, &device_, &bytes, &data, &status, &code);
  if (code != CL_SUCCESS) return nullptr;
  if (status == CL_SUCCESS && api().clBuildProgram(program, 1, &device_, kOptions, nullptr, nullptr) == CL_SUCCESS) {
    return program;
  }
  api().clReleaseProgram(program);
  return nullptr;
}

cl_program ProgramCache::from_source(const std::string& source) const {
  const char* text = source.data();
  const size_t bytes = source.size();
  cl_int code = CL_SUCCESS;
  cl_program program = api().clCreateProgramWithSource(context_, 1, &text, &bytes, &code);
  check(code, "clCreateProgramWithSource");
  code = api().clBuildProgram(program, 1, &device_, kOptions, nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  size_t log_bytes = 0;
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_bytes);
  std::string log(log_bytes, '\0');
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log_bytes, log.data(), nullptr);
  api().clReleaseProgram(program);
  AG_CHECK(code == CL_SUCCESS, "[opencl] program: {}: {}\n{}", error_name(code), log.c_str(), source);
  return nullptr;
}

// What cannot be written is built again next time.
void ProgramCache::save(cl_program program, const std::string& path) const {
  size_t bytes = 0;
  if (api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS) return;
  std::string binary(bytes, '\0');
  char* data = binary.data();
  if (bytes == 0 || api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) != CL_SUCCESS) {
    return;
  }
  try {
    io::write_file(path, sealed(binary));
  } catch (const IoError&) {  // NOLINT(bugprone-empty-catch): it is built again
  }
}

}  // namespace autograph::opencl

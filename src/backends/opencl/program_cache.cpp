#include "backends/opencl/program_cache.h"

#include <fmt/core.h>

#include "base/check.h"

namespace autograph::opencl {
namespace {

// Denormals, NaN and infinities mean what ops say: no fast math.
constexpr const char* kOptions = "-cl-std=CL1.2";

// What the driver made of a program; "" where it does not tell.
std::string binary_of(cl_program program) {
  size_t bytes = 0;
  if (api().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(bytes), &bytes, nullptr) != CL_SUCCESS) return "";
  std::string binary(bytes, '\0');
  char* data = binary.data();
  if (bytes == 0 || api().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) != CL_SUCCESS) {
    return "";
  }
  return binary;
}

}  // namespace

ProgramCache::ProgramCache(cl_context context, cl_device_id device, std::string identity, const std::string& folder)
    : context_(context), device_(device), identity_(std::move(identity)), files_(folder, "opencl") {}

std::shared_ptr<const Program> ProgramCache::get(const std::string& source) {
  const Hash128 key = Hasher().add(source).add(std::string_view(kOptions)).add(identity_).finish();
  return programs_.get(key, [&] { return build(source, key); });
}

gpu::BuiltProgram<Program> ProgramCache::build(const std::string& source, const Hash128& key) const {
  if (cl_program program = from_binary(files_.load(key))) return {std::make_shared<Program>(program, key), true};
  cl_program program = from_source(source);
  files_.save(key, [&] { return binary_of(program); });
  return {std::make_shared<Program>(program, key), false};
}

// Null where there is none, or the driver does not take it.
cl_program ProgramCache::from_binary(const std::string& binary) const {
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

}  // namespace autograph::opencl

#include "backends/opencl/program_cache.h"

#include <fmt/core.h>

#include "backends/opencl/declarations.h"
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

cl_program created(cl_context context, const std::string& source) {
  const char* text = source.data();
  const size_t bytes = source.size();
  cl_int code = CL_SUCCESS;
  cl_program program = api().clCreateProgramWithSource(context, 1, &text, &bytes, &code);
  check(code, "clCreateProgramWithSource");
  return program;
}

}  // namespace

ProgramCache::ProgramCache(cl_context context, cl_device_id device, std::string identity, const std::string& folder,
                           std::string declarations)
    : context_(context),
      device_(device),
      identity_(std::move(identity)),
      declarations_(std::move(declarations)),
      is_without_header_(!declarations_.empty()),
      files_(folder, "opencl") {}

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

// Null where it does not compile so.
cl_program ProgramCache::without_header(const std::string& source) const {
  if (!is_without_header_) return nullptr;
  cl_program program = created(context_, declarations_ + source);
  const std::string options = fmt::format("{} {}", kOptions, kWithoutHeader);
  if (api().clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr) == CL_SUCCESS) return program;
  api().clReleaseProgram(program);
  return nullptr;
}

cl_program ProgramCache::from_source(const std::string& source) const {
  if (cl_program program = without_header(source)) return program;
  cl_program program = created(context_, source);
  const cl_int code = api().clBuildProgram(program, 1, &device_, kOptions, nullptr, nullptr);
  if (code == CL_SUCCESS) {
    is_without_header_ = false;  // this driver's header is another one: it is not tried for each program
    return program;
  }
  size_t log_bytes = 0;
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, 0, nullptr, &log_bytes);
  std::string log(log_bytes, '\0');
  api().clGetProgramBuildInfo(program, device_, CL_PROGRAM_BUILD_LOG, log_bytes, log.data(), nullptr);
  api().clReleaseProgram(program);
  AG_CHECK(code == CL_SUCCESS, "[opencl] program: {}: {}\n{}", error_name(code), log.c_str(), source);
  return nullptr;
}

}  // namespace autograph::opencl

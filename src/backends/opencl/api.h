// The functions of OpenCL 1.2 that this backend calls, from a libOpenCL that is looked for when the program runs.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS  // none is called; some loaders' headers warn without
#include <CL/cl.h>

#include <span>
#include <string>
#include <string_view>

namespace autograph::opencl {

#define AG_OPENCL_FUNCTIONS(X)    \
  X(clGetPlatformIDs)             \
  X(clGetPlatformInfo)            \
  X(clGetDeviceIDs)               \
  X(clGetDeviceInfo)              \
  X(clCreateContext)              \
  X(clCreateCommandQueue)         \
  X(clReleaseCommandQueue)        \
  X(clCreateBuffer)               \
  X(clReleaseMemObject)           \
  X(clEnqueueReadBuffer)          \
  X(clEnqueueWriteBuffer)         \
  X(clEnqueueCopyBuffer)          \
  X(clEnqueueNDRangeKernel)       \
  X(clEnqueueMarkerWithWaitList)  \
  X(clEnqueueBarrierWithWaitList) \
  X(clRetainEvent)                \
  X(clReleaseEvent)               \
  X(clGetEventProfilingInfo)      \
  X(clFlush)                      \
  X(clFinish)                     \
  X(clCreateProgramWithSource)    \
  X(clCreateProgramWithBinary)    \
  X(clBuildProgram)               \
  X(clGetProgramInfo)             \
  X(clGetProgramBuildInfo)        \
  X(clReleaseProgram)             \
  X(clCreateKernel)               \
  X(clSetKernelArg)               \
  X(clReleaseKernel)

struct Api {
// NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a member
#define AG_OPENCL_MEMBER(name) decltype(&::name) name = nullptr;
  AG_OPENCL_FUNCTIONS(AG_OPENCL_MEMBER)
#undef AG_OPENCL_MEMBER
};

/// Loads the first of `libraries` that has all functions; false where none has, with the reasons in `why_not`.
bool load_api(std::span<const char* const> libraries, Api& api, std::string& why_not);

/// Of the library of this machine, which is loaded once; null where there is none.
const Api* find_api();

/// The same. Throws DeviceError that says what was looked for.
const Api& api();

/// "CL_OUT_OF_RESOURCES (-5)".
std::string error_name(cl_int code);

/// Throws DeviceError "[opencl] what: ..." unless `code` is CL_SUCCESS.
void check(cl_int code, std::string_view what);

}  // namespace autograph::opencl

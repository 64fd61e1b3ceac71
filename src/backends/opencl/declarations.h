// What generated kernels call of OpenCL C, declared by ourselves: for drivers that read a header of a megabyte first.
#pragma once

namespace autograph::opencl {

/// Option of compilers made of clang: its header `opencl-c.h` declares nothing, types and constants stay.
constexpr const char* kWithoutHeader = "-D_OPENCL_H_";

/// To be put before a program that is built so: all functions that emitters and formulas use, for all types that they
/// may be called with, so that none is taken for another one.
constexpr const char* kDeclarations = R"(#define AG_PURE __attribute__((overloadable, const))
#define AG_READS __attribute__((overloadable, pure))
#define AG_WRITES __attribute__((overloadable))
size_t AG_PURE get_global_id(uint);
size_t AG_PURE get_local_id(uint);
size_t AG_PURE get_group_id(uint);
void __attribute__((overloadable, convergent)) barrier(cl_mem_fence_flags);
int AG_WRITES atomic_max(volatile __global int*, int);
float AG_READS vload_half(size_t, const __private half*);
void AG_WRITES vstore_half_rte(float, size_t, __private half*);
#define AG_FOURS_IN(T, Space) \
  T##4 AG_READS vload4(size_t, const Space T*); \
  void AG_WRITES vstore4(T##4, size_t, Space T*);
#define AG_FOURS(T) AG_FOURS_IN(T, __global) AG_FOURS_IN(T, __local) AG_FOURS_IN(T, __private)
AG_FOURS(char) AG_FOURS(uchar) AG_FOURS(short) AG_FOURS(ushort) AG_FOURS(int) AG_FOURS(uint)
AG_FOURS(long) AG_FOURS(ulong)
#define AG_REALS(T) AG_FOURS(T) \
  T AG_PURE acos(T); T AG_PURE acosh(T); T AG_PURE asin(T); T AG_PURE asinh(T); T AG_PURE atan(T); \
  T AG_PURE atanh(T); T AG_PURE ceil(T); T AG_PURE cos(T); T AG_PURE cosh(T); T AG_PURE erf(T); \
  T AG_PURE erfc(T); T AG_PURE exp(T); T AG_PURE expm1(T); T AG_PURE fabs(T); T AG_PURE floor(T); \
  T AG_PURE log(T); T AG_PURE log1p(T); T AG_PURE rint(T); T AG_PURE round(T); T AG_PURE sin(T); \
  T AG_PURE sinh(T); T AG_PURE sqrt(T); T AG_PURE tan(T); T AG_PURE tanh(T); \
  T AG_PURE copysign(T, T); T AG_PURE fmax(T, T); T AG_PURE fmod(T, T); T AG_PURE pow(T, T); \
  int AG_PURE isinf(T); int AG_PURE isnan(T);
AG_REALS(float)
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
AG_REALS(double)
#endif
)";

}  // namespace autograph::opencl

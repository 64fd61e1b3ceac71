#include "backends/gpu/emit/text/c_types.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>

#include "base/check.h"

namespace autograph::gpu {
namespace {

constexpr const char* kOpenClPrelude = R"(#pragma OPENCL FP_CONTRACT ON
typedef char i8;
typedef uchar u8;
typedef short i16;
typedef ushort u16;
typedef int i32;
typedef uint u32;
typedef long i64;
typedef ulong u64;
typedef ulong2 u128;
typedef float f32;
#define DEVICE static inline
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define ALIGNED __attribute__((aligned(16)))
#define BARRIER() barrier(CLK_LOCAL_MEM_FENCE)
#define THREAD() ((i32)get_local_id(0))
#define GROUP() get_group_id(0)
#define ITEM() get_global_id(0)
#define ATOMIC_MAX(p, v) atomic_max((volatile __global int*)(p), v)
#define LOAD4(v, p) vstore4(vload4(0, p), 0, v)
#define STORE4(p, v) vstore4(vload4(0, v), 0, p)
DEVICE u32 bits_of(f32 x) { return as_uint(x); }
DEVICE f32 of_bits(u32 x) { return as_float(x); }
DEVICE f32 from_f16(u16 x) { return vload_half(0, (const half*)&x); }
DEVICE u16 to_f16(f32 x) { u16 y; vstore_half_rte(x, 0, (half*)&y); return y; }
)";

constexpr const char* kOpenClF64 = R"(#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
)";

constexpr const char* kCudaPrelude = R"(typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
typedef ulonglong2 u128;
typedef float f32;
typedef double f64;
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
#define DEVICE static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT static __device__ const
#define ALIGNED __attribute__((aligned(16)))
#define BARRIER() __syncthreads()
#define THREAD() ((i32)threadIdx.x)
#define GROUP() (blockIdx.x)
#define ITEM() (blockIdx.x * (u64)blockDim.x + threadIdx.x)
#define ATOMIC_MAX(p, v) atomicMax(p, v)
template <class T>
struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) Four {
  T v[4];
};
template <class T>
DEVICE void load4(T* v, const T* p) {
  if ((u64)p % alignof(Four<T>) == 0) {
    const Four<T> four = *(const Four<T>*)p;
    for (i32 k = 0; k < 4; ++k) v[k] = four.v[k];
  } else {
    for (i32 k = 0; k < 4; ++k) v[k] = p[k];
  }
}
template <class T>
DEVICE void store4(T* p, const T* v) {
  if ((u64)p % alignof(Four<T>) == 0) {
    Four<T> four;
    for (i32 k = 0; k < 4; ++k) four.v[k] = v[k];
    *(Four<T>*)p = four;
  } else {
    for (i32 k = 0; k < 4; ++k) p[k] = v[k];
  }
}
#define LOAD4(v, p) load4(v, p)
#define STORE4(p, v) store4(p, v)
DEVICE u32 bits_of(f32 x) { return __float_as_uint(x); }
DEVICE f32 of_bits(u32 x) { return __uint_as_float(x); }
DEVICE f32 from_f16(u16 x) { f32 y; asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x)); return y; }
DEVICE u16 to_f16(f32 x) { u16 y; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x)); return y; }
)";

// To the nearest, halves to even; what is NaN stays so.
constexpr const char* kBf16 = R"(DEVICE f32 from_bf16(u16 x) { return of_bits((u32)x << 16); }
DEVICE u16 to_bf16(f32 x) {
  const u32 b = bits_of(x);
  return isnan(x) ? (u16)(b >> 16 | 64) : (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
)";

std::string real_literal(double value, bool is_f64) {
  const std::string_view cast = is_f64 ? "(f64)" : "";
  if (std::isnan(value)) return fmt::format("{}NAN", cast);
  if (std::isinf(value)) return fmt::format("({}{}INFINITY)", value < 0 ? "-" : "", cast);
  std::string text = is_f64 ? fmt::format("{:.17g}", value) : fmt::format("{:.9g}", static_cast<float>(value));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  if (!is_f64) text += "f";
  return value < 0 ? "(" + text + ")" : text;
}

int bits_of(DType dtype) { return static_cast<int>(element_size(dtype)) * 8; }

// Truncates; what is out of range gets the nearest bound, NaN 0.
std::string saturated(const std::string& text, std::string_view type, int bits, bool is_signed) {
  const std::string top = fmt::format("{}.0f", std::uint64_t{1} << (bits - 1));  // exact, as a power of two
  const std::string limit = is_signed ? top : fmt::format("(2.0f * {})", top);
  const std::string all = fmt::format("(u{})(-1)", bits);
  const std::string high = is_signed ? fmt::format("({})({} >> 1)", type, all) : all;
  const std::string low = is_signed ? fmt::format("({})(-{} - 1)", type, high) : "0";
  const std::string floor = is_signed ? fmt::format("-{}", top) : "0.0f";
  return fmt::format("(isnan({0}) ? ({1})0 : {0} >= {2} ? ({1}){3} : {0} <= {4} ? ({1}){5} : ({1}){0})", text, type,
                     limit, high, floor, low);
}

}  // namespace

std::string_view storage_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16: return "u16";
    case DType::boolean: return "u8";
    default: return compute_type(dtype);
  }
}

std::string_view compute_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
    case DType::f32: return "f32";
    case DType::boolean: return "u8";
    default: return is_whole(dtype) || dtype == DType::f64 ? to_string(dtype) : "";
  }
}

size_t compute_bytes(DType dtype) {
  return is_float(dtype) && dtype != DType::f64 ? sizeof(float) : element_size(dtype);
}

std::string_view raw_type(DType dtype) {
  if (dtype == DType::string) return "";
  switch (element_size(dtype)) {
    case 1: return "u8";
    case 2: return "u16";
    case 4: return "u32";
    case 8: return "u64";
    case 16: return "u128";
    default: return "";
  }
}

bool can_compute(DType dtype, const Target& target) {
  return !compute_type(dtype).empty() && (dtype != DType::f64 || target.has_f64);
}

bool is_float(DType dtype) { return dtypes::kFloat.contains(dtype); }
bool is_whole(DType dtype) { return dtypes::kInteger.contains(dtype) || dtype == DType::boolean; }
bool is_signed_whole(DType dtype) { return dtypes::kSigned.contains(dtype); }

std::string load(DType dtype, std::string_view pointer, std::string_view at) {
  std::string element = fmt::format("{}[{}]", pointer, at);
  if (dtype == DType::f16) return fmt::format("from_f16({})", element);
  if (dtype == DType::bf16) return fmt::format("from_bf16({})", element);
  return element;
}

std::string store(DType dtype, std::string_view pointer, std::string_view at, std::string_view value) {
  if (dtype == DType::f16) return fmt::format("{}[{}] = to_f16({});", pointer, at, value);
  if (dtype == DType::bf16) return fmt::format("{}[{}] = to_bf16({});", pointer, at, value);
  return fmt::format("{}[{}] = {};", pointer, at, value);
}

std::string literal(DType dtype, double value) {
  if (is_float(dtype)) return real_literal(value, dtype == DType::f64);
  return literal(dtype, static_cast<int64_t>(value));
}

std::string literal(DType dtype, int64_t value) {
  if (is_float(dtype)) return real_literal(static_cast<double>(value), dtype == DType::f64);
  if (dtype == DType::u64) return fmt::format("(u64){}UL", static_cast<uint64_t>(value));
  if (value == std::numeric_limits<int64_t>::min()) return "((i64)1 << 63)";
  return fmt::format("({})({}L)", compute_type(dtype), value);
}

std::optional<std::string> converted(DType from, DType to, const std::string& text) {
  const std::string_view type = compute_type(to);
  if (type.empty() || compute_type(from).empty()) return std::nullopt;
  if (from == to) return text;
  if (to == DType::boolean) return fmt::format("(u8)({} != 0)", text);
  const bool is_narrow_float = to == DType::f16 || to == DType::bf16;
  // Wider than f32: to round twice is not to round once.
  if (is_narrow_float && (from == DType::f64 || (is_whole(from) && bits_of(from) > 16))) return std::nullopt;
  if (!is_float(from) || is_float(to)) return fmt::format("({}){}", type, text);
  const bool is_wide = bits_of(to) >= 32;
  if (is_wide) return saturated(text, type, bits_of(to), is_signed_whole(to));
  return fmt::format("({}){}", type, saturated(text, "i32", 32, true));
}

std::string prelude(const Target& target) {
  if (target.dialect == Dialect::cuda) return fmt::format("{}{}", kCudaPrelude, kBf16);
  return fmt::format("{}{}{}", kOpenClPrelude, target.has_f64 ? kOpenClF64 : "", kBf16);
}

}  // namespace autograph::gpu

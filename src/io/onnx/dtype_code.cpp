#include "io/onnx/dtype_code.h"

#include <array>

#include "base/check.h"

namespace autograph::io {
namespace {

// Position = ONNX code.
constexpr std::array<DType, kNumDTypes> kByCode{
    DType::undefined,  DType::f32,    DType::u8,         DType::i8,      DType::u16,   DType::i16,
    DType::i32,        DType::i64,    DType::string,     DType::boolean, DType::f16,   DType::f64,
    DType::u32,        DType::u64,    DType::c64,        DType::c128,    DType::bf16,  DType::f8e4m3fn,
    DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::u4,      DType::i4,    DType::f4e2m1,
    DType::f8e8m0,     DType::u2,     DType::i2,         DType::f6e2m3,  DType::f6e3m2};

}  // namespace

DType dtype_from_code(int64_t code, const char* where) {
  AG_CHECK_USER(code >= 0 && code < kNumDTypes, FormatError, "[onnx] {}: expected a dtype code 0..{}, got {}", where,
                kNumDTypes - 1, code);
  return kByCode[static_cast<size_t>(code)];
}

int code_of(DType dtype) {
  for (size_t code = 0; code < kByCode.size(); ++code) {
    if (kByCode[code] == dtype) return static_cast<int>(code);
  }
  throw InternalError(fmt::format("[onnx] dtype {} has no code", to_string(dtype)));
}

}  // namespace autograph::io

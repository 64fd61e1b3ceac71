// Which dtype belongs to which C++ type.
#pragma once

#include <complex>
#include <cstdint>
#include <string>

#include "autograph/dtype.h"
#include "autograph/small_float.h"

namespace autograph {

/// `kDTypeOf<float>` is DType::f32, and so on for every element type.
template <class T>
inline constexpr DType kDTypeOf = DType::undefined;
#define AG_ELEMENT_TYPE(cpp_type, dtype) \
  template <>                            \
  inline constexpr DType kDTypeOf<cpp_type> = DType::dtype;
AG_ELEMENT_TYPE(float, f32)
AG_ELEMENT_TYPE(double, f64)
AG_ELEMENT_TYPE(Half, f16)
AG_ELEMENT_TYPE(BFloat16, bf16)
AG_ELEMENT_TYPE(int8_t, i8)
AG_ELEMENT_TYPE(int16_t, i16)
AG_ELEMENT_TYPE(int32_t, i32)
AG_ELEMENT_TYPE(int64_t, i64)
AG_ELEMENT_TYPE(uint8_t, u8)
AG_ELEMENT_TYPE(uint16_t, u16)
AG_ELEMENT_TYPE(uint32_t, u32)
AG_ELEMENT_TYPE(uint64_t, u64)
AG_ELEMENT_TYPE(bool, boolean)
AG_ELEMENT_TYPE(std::string, string)
AG_ELEMENT_TYPE(std::complex<float>, c64)
AG_ELEMENT_TYPE(std::complex<double>, c128)
AG_ELEMENT_TYPE(Float8E4M3FN, f8e4m3fn)
AG_ELEMENT_TYPE(Float8E4M3FNUZ, f8e4m3fnuz)
AG_ELEMENT_TYPE(Float8E5M2, f8e5m2)
AG_ELEMENT_TYPE(Float8E5M2FNUZ, f8e5m2fnuz)
AG_ELEMENT_TYPE(Float8E8M0, f8e8m0)
AG_ELEMENT_TYPE(Float4E2M1, f4e2m1)
AG_ELEMENT_TYPE(Float6E2M3, f6e2m3)
AG_ELEMENT_TYPE(Float6E3M2, f6e3m2)
AG_ELEMENT_TYPE(Int4, i4)
AG_ELEMENT_TYPE(UInt4, u4)
AG_ELEMENT_TYPE(Int2, i2)
AG_ELEMENT_TYPE(UInt2, u2)
#undef AG_ELEMENT_TYPE

}  // namespace autograph

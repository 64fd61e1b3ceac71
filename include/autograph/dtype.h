// Element types. Low-bit types (4, 2 and 6 bits) take one byte an element in memory; files pack and unpack them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace autograph {

/// The dtype of a tensor's elements.
enum class DType : uint8_t {
  undefined,   ///< No dtype: an absent value.
  f32,         ///< IEEE 754 binary32.
  f64,         ///< IEEE 754 binary64.
  f16,         ///< IEEE 754 binary16.
  bf16,        ///< bfloat16: the upper half of binary32.
  i8,          ///< Signed 8-bit integer.
  i16,         ///< Signed 16-bit integer.
  i32,         ///< Signed 32-bit integer.
  i64,         ///< Signed 64-bit integer.
  u8,          ///< Unsigned 8-bit integer.
  u16,         ///< Unsigned 16-bit integer.
  u32,         ///< Unsigned 32-bit integer.
  u64,         ///< Unsigned 64-bit integer.
  boolean,     ///< One byte, 0 or 1.
  string,      ///< std::string elements.
  c64,         ///< Complex of two f32.
  c128,        ///< Complex of two f64.
  f8e4m3fn,    ///< OCP 8-bit float, 4 exponent bits, no infinity.
  f8e4m3fnuz,  ///< As f8e4m3fn with bias 8, one NaN, no negative zero.
  f8e5m2,      ///< OCP 8-bit float, 5 exponent bits, IEEE-like.
  f8e5m2fnuz,  ///< As f8e5m2 with bias 16, one NaN, no infinity, no negative zero.
  f8e8m0,      ///< 8-bit power-of-two scale.
  f4e2m1,      ///< OCP 4-bit float.
  f6e2m3,      ///< OCP 6-bit float, 2 exponent bits.
  f6e3m2,      ///< OCP 6-bit float, 3 exponent bits.
  i4,          ///< Signed 4-bit integer.
  u4,          ///< Unsigned 4-bit integer.
  i2,          ///< Signed 2-bit integer.
  u2,          ///< Unsigned 2-bit integer.
};

/// Number of enumerators of DType.
inline constexpr int kNumDTypes = 29;

/// Short name as printed everywhere: "f32", "i64", "bool", ...
std::string_view to_string(DType dtype);

/// The dtype with that short name; DType::undefined when there is none.
DType dtype_from_string(std::string_view name);

/// Bytes that one element takes in memory; 1 for low-bit types, sizeof(std::string) for strings.
size_t element_size(DType dtype);

/// Bits that one element takes in a file: 4 for i4, 8 for u8, 0 for strings.
int file_bits(DType dtype);

/// A set of dtypes.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (const DType d : dtypes) bits_ |= bit(d);
  }
  /// Is `dtype` in the set?
  constexpr bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  /// Is the set empty?
  constexpr bool empty() const { return bits_ == 0; }
  /// Union.
  constexpr DTypeSet operator|(DTypeSet other) const {
    DTypeSet result;
    result.bits_ = bits_ | other.bits_;
    return result;
  }
  constexpr bool operator==(const DTypeSet&) const = default;

 private:
  static constexpr uint64_t bit(DType dtype) { return uint64_t{1} << static_cast<int>(dtype); }
  uint64_t bits_ = 0;
};

/// "f32|f64".
std::string to_string(DTypeSet set);

/// Named sets of dtypes.
namespace dtypes {
inline constexpr DTypeSet kFloat{DType::f16, DType::bf16, DType::f32, DType::f64};
inline constexpr DTypeSet kSigned{DType::i8, DType::i16, DType::i32, DType::i64};
inline constexpr DTypeSet kUnsigned{DType::u8, DType::u16, DType::u32, DType::u64};
inline constexpr DTypeSet kInteger = kSigned | kUnsigned;
inline constexpr DTypeSet kNumeric = kFloat | kInteger;
inline constexpr DTypeSet kBool{DType::boolean};
inline constexpr DTypeSet kIndex{DType::i32, DType::i64};
inline constexpr DTypeSet kI64{DType::i64};
inline constexpr DTypeSet kF32{DType::f32};
inline constexpr DTypeSet kString{DType::string};
inline constexpr DTypeSet kComplex{DType::c64, DType::c128};
inline constexpr DTypeSet kFloat8{DType::f8e4m3fn, DType::f8e4m3fnuz, DType::f8e5m2, DType::f8e5m2fnuz, DType::f8e8m0};
inline constexpr DTypeSet kLowBit{DType::f4e2m1, DType::f6e2m3, DType::f6e3m2, DType::i4,
                                  DType::u4,     DType::i2,     DType::u2};
/// Every dtype: for ops that move elements and never look at them.
inline constexpr DTypeSet kAll = kNumeric | kBool | kString | kComplex | kFloat8 | kLowBit;
}  // namespace dtypes

}  // namespace autograph

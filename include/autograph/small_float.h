// Floating-point element types that C++20 lacks: binary16, bfloat16 and the OCP 8-, 6- and 4-bit floats.
//
// One template describes them all by bit layout; conversion from float rounds to nearest, ties to even.
// Sources: IEEE 754-2019; OCP 8-bit Floating Point Specification 1.0; OCP Microscaling Formats 1.0;
// the "fnuz" variants as ONNX documents them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace autograph {

/// What the encodings with an all-ones exponent mean.
enum class Specials {
  ieee,      ///< Infinity and NaN, as in IEEE 754.
  nan_only,  ///< "fn": only all-ones exponent and mantissa is NaN; no infinity.
  fnuz,      ///< One NaN, at negative zero; no infinity.
  none,      ///< Every encoding is a number: conversion saturates, NaN becomes the largest.
};

/// The number that binary16 bits stand for. Without branches, so that loops over it become vector instructions.
inline float binary16_to_float(uint16_t bits) {
  // The exponent field moved into place is too small by 127 - 15, for subnormals too.
  const uint32_t magnitude = (bits & 0x7FFFU) << 13;
  uint32_t raw = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  raw = magnitude >= 0x0F800000U ? raw | 0x7F800000U : raw;  // infinity, NaN
  raw = magnitude > 0x0F800000U ? 0x7FC00000U : raw;
  return std::bit_cast<float>(raw | (bits & 0x8000U) << 16);
}

/// The binary16 bits nearest to `value`, ties to even; infinity beyond the largest. Without branches, too.
inline uint16_t float_to_binary16(float value) {
  const auto raw = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = raw & 0x7FFFFFFFU;
  // Adding 2^-1 leaves the bits of a subnormal result at the end of the sum, rounded.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3F000000U;
  const uint32_t normal = (magnitude + 0xFFFU + (magnitude >> 13 & 1U) - 0x38000000U) >> 13;
  uint32_t bits = magnitude < 0x38800000U ? subnormal : normal;
  bits = bits > 0x7C00U ? 0x7C00U : bits;
  bits = magnitude > 0x7F800000U ? 0x7E00U : bits;
  return static_cast<uint16_t>(bits | (raw >> 16 & 0x8000U));
}

/// A float of 1 + ExponentBits + MantissaBits bits, held in Bits.
template <class Bits, int ExponentBits, int MantissaBits, int Bias, Specials Kind>
struct SmallFloat {
  Bits bits = 0;

  static constexpr int kExponentBits = ExponentBits;
  static constexpr int kMantissaBits = MantissaBits;
  static constexpr Bits kSignMask = static_cast<Bits>(Bits{1} << (ExponentBits + MantissaBits));
  static constexpr Bits kMagnitudeMask = static_cast<Bits>(kSignMask - 1);
  static constexpr int kMaxExponentField = (1 << ExponentBits) - 1;

  /// Largest finite magnitude as an encoding.
  static constexpr Bits max_bits() {
    if constexpr (Kind == Specials::ieee) {
      return static_cast<Bits>(kMagnitudeMask & ~(Bits{1} << MantissaBits));
    } else if constexpr (Kind == Specials::nan_only) {
      return static_cast<Bits>(kMagnitudeMask - 1);
    } else {
      return kMagnitudeMask;
    }
  }

  SmallFloat() = default;
  explicit SmallFloat(float value) : bits(encode(value, false)) {}
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, float>) explicit SmallFloat(T value)
      : SmallFloat(static_cast<float>(value)) {}
  static SmallFloat from_bits(Bits bits) {
    SmallFloat result;
    result.bits = bits;
    return result;
  }
  /// Rounds and clamps to the largest finite value instead of overflowing (ONNX Cast with saturate=1).
  static SmallFloat saturating(float value) { return from_bits(encode(value, true)); }

  operator float() const { return decode(bits); }  // NOLINT: implicit, as between C++ floats

  bool operator==(const SmallFloat& other) const { return float(*this) == float(other); }

 private:
  static constexpr bool kIsBinary16 = Kind == Specials::ieee && ExponentBits == 5 && MantissaBits == 10;

  static float decode(Bits b) {
    if constexpr (kIsBinary16) return binary16_to_float(b);
    const int sign = (b & kSignMask) ? -1 : 1;
    const int exponent = (b & kMagnitudeMask) >> MantissaBits;
    const int mantissa = b & ((1 << MantissaBits) - 1);
    const float nan = std::numeric_limits<float>::quiet_NaN();
    if constexpr (Kind == Specials::ieee) {
      if (exponent == kMaxExponentField) {
        return mantissa ? nan : static_cast<float>(sign) * std::numeric_limits<float>::infinity();
      }
    } else if constexpr (Kind == Specials::nan_only) {
      if ((b & kMagnitudeMask) == kMagnitudeMask) return nan;
    } else if constexpr (Kind == Specials::fnuz) {
      if (b == kSignMask) return nan;
    }
    const float magnitude =
        exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - Bias - MantissaBits)
                      : std::ldexp(static_cast<float>(mantissa + (1 << MantissaBits)), exponent - Bias - MantissaBits);
    return sign < 0 ? -magnitude : magnitude;
  }

  static Bits nan_encoding() {
    if constexpr (Kind == Specials::ieee) {
      return static_cast<Bits>((kMagnitudeMask & ~((Bits{1} << MantissaBits) - 1)) | (Bits{1} << (MantissaBits - 1)));
    } else if constexpr (Kind == Specials::fnuz) {
      return kSignMask;
    } else {
      return kMagnitudeMask;  // nan_only: the NaN; none: the largest
    }
  }

  static Bits overflow_encoding(Bits sign, bool saturate) {
    if (saturate || Kind == Specials::none) return static_cast<Bits>(sign | max_bits());
    if constexpr (Kind == Specials::ieee) {
      return static_cast<Bits>(sign | (static_cast<Bits>(kMaxExponentField) << MantissaBits));
    } else if constexpr (Kind == Specials::nan_only) {
      return static_cast<Bits>(sign | kMagnitudeMask);
    } else {
      return kSignMask;  // fnuz NaN
    }
  }

  static Bits encode(float value, bool saturate) {
    if constexpr (kIsBinary16) {
      const Bits bits = float_to_binary16(value);
      return saturate && (bits & kMagnitudeMask) == max_bits() + 1 ? static_cast<Bits>(bits - 1) : bits;
    }
    const auto raw = std::bit_cast<uint32_t>(value);
    const Bits sign = (raw >> 31) ? kSignMask : Bits{0};
    if (std::isnan(value)) {
      return Kind == Specials::fnuz   ? kSignMask
             : Kind == Specials::none ? max_bits()
                                      : static_cast<Bits>(sign | nan_encoding());
    }
    const float magnitude = std::fabs(value);
    if (std::isinf(value)) {
      // Saturation clamps infinity too, except where the type can hold it.
      return overflow_encoding(sign, saturate);
    }
    if (magnitude == 0) return Kind == Specials::fnuz ? Bits{0} : sign;
    int exponent = 0;
    std::frexp(magnitude, &exponent);  // magnitude = f * 2^exponent, f in [0.5, 1)
    int field = exponent - 1 + Bias;   // biased exponent of a normal number
    if (field < 1) field = 1;          // subnormal: same scale as the smallest normal
    const float scaled = std::ldexp(magnitude, MantissaBits - (field - Bias));
    const auto rounded = static_cast<uint32_t>(std::nearbyint(scaled));  // ties to even
    uint32_t code = 0;
    if (rounded >> (MantissaBits + 1)) {
      code = static_cast<uint32_t>(field + 1) << MantissaBits;
    } else if (rounded >> MantissaBits) {
      code = (static_cast<uint32_t>(field) << MantissaBits) | (rounded & ((1u << MantissaBits) - 1));
    } else {
      code = rounded;  // subnormal
    }
    if (code > max_bits()) return overflow_encoding(sign, saturate);
    if (code == 0 && Kind == Specials::fnuz) return 0;
    return static_cast<Bits>(sign | code);
  }
};

using Half = SmallFloat<uint16_t, 5, 10, 15, Specials::ieee>;
using Float8E4M3FN = SmallFloat<uint8_t, 4, 3, 7, Specials::nan_only>;
using Float8E4M3FNUZ = SmallFloat<uint8_t, 4, 3, 8, Specials::fnuz>;
using Float8E5M2 = SmallFloat<uint8_t, 5, 2, 15, Specials::ieee>;
using Float8E5M2FNUZ = SmallFloat<uint8_t, 5, 2, 16, Specials::fnuz>;
using Float4E2M1 = SmallFloat<uint8_t, 2, 1, 1, Specials::none>;
using Float6E2M3 = SmallFloat<uint8_t, 2, 3, 1, Specials::none>;
using Float6E3M2 = SmallFloat<uint8_t, 3, 2, 3, Specials::none>;

/// bfloat16: a template of its own because truncation makes it one shift instead of a scaling.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    const auto raw = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) {
      bits = static_cast<uint16_t>((raw >> 16) | 0x40);
    } else {
      bits = static_cast<uint16_t>((raw + 0x7FFF + ((raw >> 16) & 1)) >> 16);
    }
  }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, float>) explicit BFloat16(T value)
      : BFloat16(static_cast<float>(value)) {}
  static BFloat16 from_bits(uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }  // NOLINT
  bool operator==(const BFloat16& other) const { return float(*this) == float(other); }
};

/// Power-of-two scale of the OCP microscaling formats: 2^(bits - 127); 255 is NaN. No sign, no zero.
struct Float8E8M0 {
  uint8_t bits = 127;

  Float8E8M0() = default;
  explicit Float8E8M0(float value) : bits(encode(value)) {}
  static Float8E8M0 from_bits(uint8_t bits) {
    Float8E8M0 result;
    result.bits = bits;
    return result;
  }
  operator float() const {  // NOLINT: implicit, as between C++ floats
    if (bits == 255) return std::numeric_limits<float>::quiet_NaN();
    return std::ldexp(1.0F, static_cast<int>(bits) - 127);
  }

 private:
  static uint8_t encode(float value) {
    if (std::isnan(value) || std::isinf(value)) return 255;
    if (value <= 0) return 0;
    int exponent = 0;
    const float fraction = std::frexp(value, &exponent);  // in [0.5, 1)
    const int code = exponent - 1 + (fraction > 0.75F ? 1 : 0) + 127;
    return static_cast<uint8_t>(code < 0 ? 0 : code > 254 ? 254 : code);
  }
};

/// An integer of Width bits held in one byte.
template <int Width, bool Signed>
struct SmallInt {
  int8_t value = 0;
  static constexpr int kMin = Signed ? -(1 << (Width - 1)) : 0;
  static constexpr int kMax = Signed ? (1 << (Width - 1)) - 1 : (1 << Width) - 1;

  SmallInt() = default;
  /// Keeps the low bits, as integer conversion in C++ does.
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit SmallInt(T v) {
    const auto low = static_cast<int>(static_cast<int64_t>(v) & ((1 << Width) - 1));
    value = static_cast<int8_t>(Signed && low > kMax ? low - (1 << Width) : low);
  }
  operator int() const { return value; }  // NOLINT: implicit, as between C++ integers
};

using Int4 = SmallInt<4, true>;
using UInt4 = SmallInt<4, false>;
using Int2 = SmallInt<2, true>;
using UInt2 = SmallInt<2, false>;

}  // namespace autograph

// Conversion of one element to a wide number and back: what cast is made of.
//
// Every real dtype is read as f64, i64 or u64 without loss, and every dtype is written from those three.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <type_traits>

#include "ops/elementwise/formula/number.h"
#include "tensor/element_types.h"

namespace autograph {

/// How to round to a power of two.
enum class ScaleRounding { up, down, nearest };

/// How a conversion treats what the target cannot hold.
struct ConvertOptions {
  bool saturate = true;                        ///< 8-bit floats: clamp instead of overflowing to infinity or NaN.
  ScaleRounding rounding = ScaleRounding::up;  ///< For f8e8m0.
};

/// The wide type that holds every T.
template <class T>
using WideType = std::conditional_t<kIsFloat<T>, double, std::conditional_t<std::is_same_v<T, uint64_t>, T, int64_t>>;

/// `value` as f32, where inexact results get an odd last bit. Rounding that to a narrower float once more gives what
/// rounding `value` directly would have given.
inline float round_to_odd(double value) {
  auto nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) nearest = std::nextafter(nearest, 0.0F);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(nearest) | 1U);
}

/// The power of two that stands for `value`. Negative numbers count as 0.
inline Float8E8M0 to_scale(float value, const ConvertOptions& options) {
  constexpr uint8_t kNan = 255;
  constexpr uint8_t kLargest = 254;
  if (std::isnan(value)) return Float8E8M0::from_bits(kNan);
  if (value < 0x1p-127F) return Float8E8M0::from_bits(options.saturate ? 0 : kNan);
  const auto raw = std::bit_cast<uint32_t>(value);
  uint32_t code = raw >> 23;
  uint32_t rest = raw & 0x7FFFFF;
  // Below 2^-126 floats are subnormal: the leading one of 2^-127 is part of the mantissa.
  if (code == 0) rest = (rest - 0x400000) * 2;
  if (options.rounding == ScaleRounding::up ? rest != 0
                                            : options.rounding == ScaleRounding::nearest && rest >= 0x400000) {
    ++code;
  }
  if (code > kLargest) return Float8E8M0::from_bits(options.saturate ? kLargest : kNan);
  return Float8E8M0::from_bits(static_cast<uint8_t>(code));
}

/// `value` as a float narrower than f32.
template <class T>
T to_small_float(double value, const ConvertOptions& options) {
  const float single = round_to_odd(value);
  if constexpr (std::is_same_v<T, Float8E8M0>) {
    return to_scale(single, options);
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return T(single);
  } else {
    // Formats without NaN: negative zero, as in the ONNX reference.
    if (T(std::numeric_limits<float>::quiet_NaN()).bits == T::max_bits() && std::isnan(single)) {
      return T::from_bits(T::kSignMask);
    }
    return sizeof(T) == 1 && options.saturate ? T::saturating(single) : T(single);
  }
}

/// `value` as T. Integers to integers keep the low bits. Floats to integers truncate: 32 and 64 bits saturate, narrower
/// targets keep the low bits of the saturated 32-bit result; NaN gives 0. Anything but 0 is true.
template <class T, class Wide>
T convert_number(Wide value, const ConvertOptions& options) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != Wide(0);
  } else if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return static_cast<T>(value);
  } else if constexpr (kIsFloat<T>) {
    return to_small_float<T>(static_cast<double>(value), options);
  } else if constexpr (!std::is_same_v<Wide, double>) {
    return T(value);
  } else if constexpr (sizeof(T) >= 4) {
    return saturating_integer<T>(value);
  } else {
    return T(saturating_integer<int32_t>(value));
  }
}

/// The number that `text` spells, for a target of type T; throws ValueError when it spells none.
template <class T>
T parse_number(const std::string& text, const ConvertOptions& options);

/// The shortest decimal text that reads back as `value`; "NaN", "INF", "-INF".
std::string format_number(float value);
std::string format_number(double value);
std::string format_number(int64_t value);
std::string format_number(uint64_t value);

/// A whole or real number read from text; throws ValueError when there is none.
struct ParsedNumber {
  bool whole = false;    ///< Is it in `integer` (or `natural`)?
  bool large = false;    ///< Whole, above the range of i64: in `natural`.
  int64_t integer = 0;   ///< When whole.
  uint64_t natural = 0;  ///< When large.
  double real = 0;       ///< When not whole.
};
ParsedNumber parse_number_text(const std::string& text);

template <class T>
T parse_number(const std::string& text, const ConvertOptions& options) {
  const ParsedNumber number = parse_number_text(text);
  if (number.large) return convert_number<T>(number.natural, options);
  if (number.whole) return convert_number<T>(number.integer, options);
  return convert_number<T>(number.real, options);
}

}  // namespace autograph

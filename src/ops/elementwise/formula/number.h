// Arithmetic on elements with every case defined: integers wrap, conversions saturate, NaN propagates.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace autograph {

/// a + b; integers wrap around.
template <class T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return a + b;
  }
}

/// a - b; integers wrap around.
template <class T>
T wrapping_sub(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  } else {
    return a - b;
  }
}

/// a * b; integers wrap around.
template <class T>
T wrapping_mul(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return a * b;
  }
}

/// a / b; integers truncate towards zero, x / 0 is 0 and lowest / -1 wraps to lowest.
template <class T>
T defined_div(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == T(-1)) return wrapping_sub(T(0), a);
    }
    return static_cast<T>(a / b);
  } else {
    return a / b;
  }
}

/// The larger one; NaN when either is NaN.
template <class T>
T max_nan(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return a < b ? b : a;
}

/// The smaller one; NaN when either is NaN.
template <class T>
T min_nan(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) return a;
    if (std::isnan(b)) return b;
  }
  return b < a ? b : a;
}

/// Truncates towards zero into [low, high]; NaN gives 0. The bounds must be those of an integer type of up to 64 bits.
template <std::integral T>
T saturating_integer(double value, T low = std::numeric_limits<T>::lowest(), T high = std::numeric_limits<T>::max()) {
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(value);
  // double(high) may round up to 2^63 or 2^64, hence >=.
  if (whole >= static_cast<double>(high)) return high;
  if (whole <= static_cast<double>(low)) return low;
  return static_cast<T>(whole);
}

/// `value` as T: truncating and saturating for integers, rounding for floats.
template <class T>
T from_double(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else if constexpr (std::is_integral_v<T>) {
    return saturating_integer<T>(value);
  } else {
    return T(value);
  }
}

}  // namespace autograph

// Integer arithmetic that reports overflow instead of wrapping. Every size that comes from a file goes through it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/check.h"

namespace autograph {

/// a * b, or nothing when it does not fit.
inline std::optional<int64_t> find_product(int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

/// a * b; throws ShapeError naming `what` on overflow.
inline int64_t checked_mul(int64_t a, int64_t b, const char* what) {
  const auto result = find_product(a, b);
  AG_CHECK_USER(result, ShapeError, "[{}] size: {} * {} overflows 64 bits", what, a, b);
  return *result;
}

/// a + b; throws ShapeError naming `what` on overflow.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t result = 0;
  AG_CHECK_USER(!__builtin_add_overflow(a, b, &result), ShapeError, "[{}] size: {} + {} overflows 64 bits", what, a, b);
  return result;
}

/// Product of all dims; throws ShapeError on a negative dim or overflow. The empty product is 1; a zero dim makes the
/// product 0, whatever the others are.
inline int64_t checked_product(std::span<const int64_t> dims, const char* what) {
  bool zero = false;
  for (const int64_t d : dims) {
    AG_CHECK_USER(d >= 0, ShapeError, "[{}] dim: expected 0 or more, got {}", what, d);
    zero = zero || d == 0;
  }
  if (zero) return 0;
  int64_t result = 1;
  for (const int64_t d : dims) result = checked_mul(result, d, what);
  return result;
}

}  // namespace autograph

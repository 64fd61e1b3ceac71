#include "prove/verify/exact/prime_field.h"

#include <cmath>

#include "base/hash.h"

namespace autograph {
namespace {

constexpr int64_t kMaxDenominator = 1000;

// mantissa * 2^exponent.
uint64_t field_of_binary(float value) {
  int exponent = 0;
  const auto mantissa = static_cast<int64_t>(std::ldexp(std::frexp(value, &exponent), 24));
  exponent -= 24;
  const uint64_t power = field_power(2, static_cast<uint64_t>(std::abs(exponent)));
  return field_multiply(field_of(mantissa), exponent < 0 ? field_inverse(power) : power);
}

}  // namespace

uint64_t field_power(uint64_t a, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = field_multiply(result, a);
    a = field_multiply(a, a);
  }
  return result;
}

uint64_t field_inverse(uint64_t a) { return field_power(a, kPrime - 2); }

uint64_t field_of(int64_t value) {
  const uint64_t magnitude = (value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value)) % kPrime;
  return value < 0 ? field_negate(magnitude) : magnitude;
}

uint64_t field_of(float value) {
  if (!std::isfinite(value)) return hash_bytes(&value, sizeof(value)).low % kPrime;
  if (std::fabs(value) >= 0x1p24F) return field_of_binary(value);
  for (int64_t denominator = 1; denominator <= kMaxDenominator; ++denominator) {
    const double numerator = std::round(static_cast<double>(value) * static_cast<double>(denominator));
    if (static_cast<float>(numerator / static_cast<double>(denominator)) == value) {
      return field_multiply(field_of(static_cast<int64_t>(numerator)),
                            field_inverse(static_cast<uint64_t>(denominator)));
    }
  }
  return field_of_binary(value);
}

}  // namespace autograph

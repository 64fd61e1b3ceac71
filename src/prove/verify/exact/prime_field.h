// Arithmetic modulo the prime 2^61 - 1: sums and products without rounding, in which an identity of real numbers that
// only adds, multiplies and divides holds exactly. Two different polynomials agree at a random point with a chance of
// about degree / 2^61.
#pragma once

#include <cstdint>

namespace autograph {

/// The modulus.
inline constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

inline uint64_t field_add(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum >= kPrime ? sum - kPrime : sum;
}

inline uint64_t field_negate(uint64_t a) { return a == 0 ? 0 : kPrime - a; }

inline uint64_t field_subtract(uint64_t a, uint64_t b) { return field_add(a, field_negate(b)); }

inline uint64_t field_multiply(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  // 2^61 = 1 modulo the prime, so that the upper half is added to the lower one.
  return field_add(static_cast<uint64_t>(product & kPrime), static_cast<uint64_t>(product >> 61));
}

uint64_t field_power(uint64_t a, uint64_t exponent);

/// 1 / a; 0 for 0, which has none.
uint64_t field_inverse(uint64_t a);

uint64_t field_of(int64_t value);

/// The number that a float stands for: n / d where a denominator of up to 1000 gives exactly this float (so that the
/// float 1/9 is one ninth), else the fraction that its bits say. Infinities and NaN get values of their own.
uint64_t field_of(float value);

/// The number nearest to zero that is `a` modulo the prime: the order of `a` among small integers.
inline int64_t signed_of(uint64_t a) {
  return a > kPrime / 2 ? static_cast<int64_t>(a) - static_cast<int64_t>(kPrime) : static_cast<int64_t>(a);
}

}  // namespace autograph

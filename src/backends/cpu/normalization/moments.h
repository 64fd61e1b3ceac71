// Mean and variance of f32 elements: whether sums in f32 are good enough for them, and sums in f64 where they are not.
#pragma once

#include <cstdint>
#include <limits>

namespace autograph {

struct Moments {
  double mean;
  double variance;
};

/// A variance that rounding may have taken below 0. NaN stays NaN.
inline double no_less_than_zero(double variance) { return variance < 0 ? 0 : variance; }

/// Squares of differences, added up in f32, have come to `variance`; the mean of the differences is `offset`, or is
/// off by some roundings of `offset`. False: some were beyond the range of f32, or cancellation left too few digits of
/// what is divided by.
inline bool holds_in_f32(double variance, double offset, double epsilon) {
  // Squares below the smallest have lost digits. A relative error of 1e-6 becomes one of 1e-3 at most.
  constexpr double kSmallest = 1e-30, kLeastLeft = 1e-3;
  const double divisor = variance + epsilon;
  return divisor >= kSmallest + offset * offset * kLeastLeft && divisor <= std::numeric_limits<double>::max();
}

/// Of the elements of x at the positions that for_each(visit) visits.
template <class ForEach>
Moments moments_in_f64(const float* x, const ForEach& for_each) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  for_each([&](int64_t at) {
    sum += static_cast<double>(x[at]);
    ++count;
  });
  const double mean = sum / static_cast<double>(count);
  for_each([&](int64_t at) {
    const double difference = static_cast<double>(x[at]) - mean;
    squares += difference * difference;
  });
  return {mean, squares / static_cast<double>(count)};
}

}  // namespace autograph

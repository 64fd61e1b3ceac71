// The discrete Fourier transform by its definition, for reference implementations.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

namespace autograph {

/// The first `count` of sum over n of x[n] * exp(direction * 2 pi i k n / N), N being the length of x; direction is -1
/// for the transform and +1 for its inverse, which the caller divides by N.
inline std::vector<std::complex<double>> fourier(const std::vector<std::complex<double>>& x, int64_t count,
                                                 double direction) {
  const auto length = static_cast<int64_t>(x.size());
  std::vector<std::complex<double>> roots;
  for (int64_t i = 0; i < length; ++i) {
    roots.push_back(
        std::polar(1.0, direction * 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(length)));
  }
  std::vector<std::complex<double>> result(static_cast<size_t>(count));
  for (int64_t k = 0; k < count; ++k) {
    int64_t turn = 0;  // k * n modulo the length
    for (int64_t n = 0; n < length; ++n) {
      result[static_cast<size_t>(k)] += x[static_cast<size_t>(n)] * roots[static_cast<size_t>(turn)];
      turn = (turn + k) % length;
    }
  }
  return result;
}

}  // namespace autograph

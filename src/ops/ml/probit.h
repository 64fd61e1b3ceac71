// The standard normal quantile as models in ai.onnx.ml have it.
#pragma once

#include <cmath>

namespace autograph {

inline double sign(double x) { return x < 0 ? -1 : 1; }

/// The value below which a normal variable is with probability `p`, by Winitzki's formula with the digits that the
/// ONNX reference and ONNX Runtime have: up to 0.002 off the quantile, but what these models were checked with.
/// `Number` is double or Var.
template <typename Number>
Number probit(const Number& p) {
  using std::log;
  using std::sqrt;
  constexpr double kWinitzki = 0.147, kPi = 3.14159;
  const Number x = 2 * p - 1, logarithm = log((1 - x) * (1 + x));
  const Number half = 2 / (kPi * kWinitzki) + logarithm * 0.5;
  return std::sqrt(2.0) * sign(x) * sqrt(sqrt(half * half - logarithm * (1 / kWinitzki)) - half);
}

}  // namespace autograph

// The discrete Fourier transform as text, of signals of one length.
#pragma once

#include <functional>
#include <vector>

#include "backends/gpu/emit/text/writer.h"

namespace autograph::gpu {

/// y[line, k] = sum over n of x[line, n] * exp(direction * 2 pi i k n / length).
struct Transform {
  int64_t lines = 0;
  int64_t length = 0;
  int64_t count = 0;  ///< Of the first k, which are wanted.
  int direction = -1;
  bool is_real = false;  ///< Has x no imaginary parts?
  std::vector<Parameter> inputs;
  Parameter output;
  /// Writes the declaration of "x_re" and, unless `is_real`, "x_im", for `n` of `line`.
  std::function<void()> read;
  /// Writes what becomes of "re" and "im", for `k` of `line`.
  std::function<void()> write;
};

/// The dtype that transforms are computed in: f64 as the reference's, where there is f64.
DType transform_dtype(const Target& target);

/// Why a length has no kernel; "" when it has one: those of large prime factors have none.
std::string why_not_length(int64_t length);

/// Writes the kernels: the length is split by its factors, each of which is a step through scratch memory. Positions of
/// the operands must be covered.
void write_transform(Writer& writer, const Transform& transform);

}  // namespace autograph::gpu

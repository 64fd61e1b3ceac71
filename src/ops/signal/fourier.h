// The discrete Fourier transform, for reference implementations: X[k] = sum over n of x[n] * exp(direction * 2 pi i k n
// / N). The sum as it stands is the definition and what short signals get; it takes N^2 steps, which for a million
// samples is hours, so long signals get a fast transform, in f64 as well.
//
// A length of small prime factors is split by them (mixed radix); any other length becomes a circular convolution of a
// power of two (Bluestein). Both take O(N log N) steps, and errors grow with log N instead of N.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace autograph {

/// Transforms signals of one length. Direction is -1 for the transform and +1 for its inverse, which the caller divides
/// by the length.
class Fourier {
 public:
  Fourier(int64_t length, int direction);

  /// The first `count` elements of the transform of `x`, which has the length given.
  std::vector<std::complex<double>> run(std::span<const std::complex<double>> x, int64_t count) const;

  /// The same by the definition, whatever the length.
  std::vector<std::complex<double>> run_sum(std::span<const std::complex<double>> x, int64_t count) const;

 private:
  using Complex = std::complex<double>;
  void split(const Complex* x, size_t stride, size_t length, Complex* y) const;
  std::vector<Complex> convolve(std::span<const Complex> x) const;

  size_t length_;
  int direction_;
  std::vector<Complex> roots_;   // exp(direction * 2 pi i k / length)
  std::vector<Complex> chirp_;   // exp(direction * pi i k^2 / length); empty unless by convolution
  std::vector<Complex> kernel_;  // transform of the conjugate chirp, scaled
  std::vector<Fourier> powers_;  // of two, there and back, for the convolution
};

}  // namespace autograph

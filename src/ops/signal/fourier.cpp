#include "ops/signal/fourier.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numbers>

namespace autograph {
namespace {

using Complex = std::complex<double>;

constexpr size_t kLongestSum = 64;     // signals up to this length are summed as the definition says
constexpr size_t kLargestFactor = 13;  // of lengths that are split: the work per element grows with the factors

size_t smallest_factor(size_t n) {
  for (size_t factor = 2; factor <= kLargestFactor; ++factor) {
    if (n % factor == 0) return factor;
  }
  return n;
}

bool splits(size_t n) {
  while (n > 1) {
    const size_t factor = smallest_factor(n);
    if (factor > kLargestFactor) return false;
    n /= factor;
  }
  return true;
}

// exp(pi i * turns / half): `turns` of the 2 * half steps of a full circle.
Complex root(int direction, size_t turns, size_t half) {
  return std::polar(1.0, direction * std::numbers::pi * static_cast<double>(turns) / static_cast<double>(half));
}

}  // namespace

Fourier::Fourier(int64_t length, int direction) : length_(static_cast<size_t>(length)), direction_(direction) {
  const bool by_convolution = length_ > kLongestSum && !splits(length_);
  if (!by_convolution) {
    roots_.reserve(length_);
    for (size_t k = 0; k < length_; ++k) roots_.push_back(root(direction, 2 * k, length_));
    return;
  }
  const size_t padded = std::bit_ceil(2 * length_ - 1);
  std::vector<Complex> mirrored(padded);
  chirp_.reserve(length_);
  size_t square = 0;  // k^2 modulo 2 * length
  for (size_t k = 0; k < length_; ++k) {
    chirp_.push_back(root(direction, square, length_));
    mirrored[k] = std::conj(chirp_.back());
    if (k > 0) mirrored[padded - k] = mirrored[k];
    square = (square + 2 * k + 1) % (2 * length_);
  }
  powers_.emplace_back(static_cast<int64_t>(padded), -1);
  powers_.emplace_back(static_cast<int64_t>(padded), 1);
  kernel_ = powers_[0].run(mirrored, static_cast<int64_t>(padded));
  for (Complex& value : kernel_) value /= static_cast<double>(padded);
}

std::vector<Complex> Fourier::run(std::span<const Complex> x, int64_t count) const {
  if (length_ <= kLongestSum) return run_sum(x, count);
  std::vector<Complex> y;
  if (chirp_.empty()) {
    y.resize(length_);
    split(x.data(), 1, length_, y.data());
  } else {
    y = convolve(x);
  }
  y.resize(static_cast<size_t>(count));
  return y;
}

std::vector<Complex> Fourier::run_sum(std::span<const Complex> x, int64_t count) const {
  std::vector<Complex> y(static_cast<size_t>(count));
  for (size_t k = 0; k < y.size(); ++k) {
    size_t turn = 0;  // k * n modulo the length
    for (size_t n = 0; n < length_; ++n) {
      y[k] += x[n] * (chirp_.empty() ? roots_[turn] : root(direction_, 2 * turn, length_));
      turn = (turn + k) % length_;
    }
  }
  return y;
}

// With length = p * m: p transforms of every p-th element, then X[k + q * m] = sum over r of w^(r * (k + q * m)) *
// Y_r[k].
void Fourier::split(const Complex* x, size_t stride, size_t length, Complex* y) const {
  if (length == 1) {
    y[0] = x[0];
    return;
  }
  const size_t p = smallest_factor(length);
  const size_t m = length / p;
  for (size_t r = 0; r < p; ++r) split(x + r * stride, stride * p, m, y + r * m);
  std::array<Complex, kLargestFactor> parts;
  for (size_t k = 0; k < m; ++k) {
    for (size_t r = 0; r < p; ++r) parts[r] = y[r * m + k];
    for (size_t q = 0; q < p; ++q) {
      Complex sum = parts[0];
      for (size_t r = 1; r < p; ++r) sum += parts[r] * roots_[r * (k + q * m) % length * stride];
      y[k + q * m] = sum;
    }
  }
}

// k * n = (k^2 + n^2 - (k - n)^2) / 2 makes the transform a convolution with a chirp.
std::vector<Complex> Fourier::convolve(std::span<const Complex> x) const {
  const auto padded = static_cast<int64_t>(kernel_.size());
  std::vector<Complex> product(kernel_.size());
  for (size_t n = 0; n < length_; ++n) product[n] = x[n] * chirp_[n];
  product = powers_[0].run(product, padded);
  for (size_t k = 0; k < product.size(); ++k) product[k] *= kernel_[k];
  product = powers_[1].run(product, padded);
  for (size_t k = 0; k < length_; ++k) product[k] *= chirp_[k];
  product.resize(length_);
  return product;
}

}  // namespace autograph

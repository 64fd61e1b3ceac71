// The fast transforms against the definition.
#include "ops/signal/fourier.h"

#include <gtest/gtest.h>

#include <random>

#include "ops/call_op.h"
#include "ops/defs.h"

namespace autograph {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> random_signal(int64_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<Complex> x;
  for (int64_t i = 0; i < length; ++i) {
    const double real = draw(random);
    x.emplace_back(real, draw(random));
  }
  return x;
}

double largest_difference(const std::vector<Complex>& a, const std::vector<Complex>& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

TEST(Fourier, AgreesWithTheSumAtEveryLengthAroundTheSwitch) {
  for (int64_t length = 1; length <= 220; ++length) {
    const std::vector<Complex> x = random_signal(length, static_cast<uint64_t>(length));
    for (const int direction : {-1, 1}) {
      const Fourier transform(length, direction);
      EXPECT_LT(largest_difference(transform.run(x, length), transform.run_sum(x, length)), 1e-12) << length;
    }
  }
}

TEST(Fourier, AgreesWithTheSumOnLongLengthsOfEveryKind) {
  // Powers, products of small primes, a prime, twice a prime, a product of primes that are too large to split.
  for (const int64_t length : {1024, 2 * 3 * 5 * 7 * 11, 13 * 128, 1009, 2 * 1013, 17 * 19 * 5}) {
    const std::vector<Complex> x = random_signal(length, 7);
    const Fourier transform(length, -1);
    EXPECT_LT(largest_difference(transform.run(x, length), transform.run_sum(x, length)), 1e-10) << length;
  }
}

TEST(Fourier, InverseUndoesTheTransform) {
  for (const int64_t length : {96, 97, 4096, 5003}) {
    const std::vector<Complex> x = random_signal(length, 3);
    std::vector<Complex> back = Fourier(length, 1).run(Fourier(length, -1).run(x, length), length);
    for (Complex& value : back) value /= static_cast<double>(length);
    EXPECT_LT(largest_difference(back, x), 1e-12) << length;
  }
}

TEST(Fourier, GivesOnlyAsManyFrequenciesAsAreAskedFor) {
  const std::vector<Complex> x = random_signal(101, 5);
  const Fourier transform(101, -1);
  EXPECT_EQ(transform.run(x, 51).size(), 51u);
  EXPECT_EQ(transform.run(x, 0).size(), 0u);
}

TEST(Dft, TransformsAMillionSamplesInSeconds) {
  // A line at one frequency: everything but that frequency and its mirror vanishes. The sum would take hours.
  constexpr int64_t kLength = 1 << 20;
  Tensor x = Tensor::empty(DType::f32, {kLength, 1});
  for (int64_t i = 0; i < kLength; ++i) x.mutable_data<float>()[i] = i % 4 == 0 ? 1.0f : i % 4 == 2 ? -1.0f : 0.0f;
  const Tensor y = call_op(dft_def(), {x})[0];
  const float* part = y.data<float>();
  EXPECT_NEAR(part[kLength / 4 * 2], kLength / 2.0, 1e-3);
  EXPECT_NEAR(part[kLength / 4 * 3 * 2], kLength / 2.0, 1e-3);
  EXPECT_NEAR(part[0], 0, 1e-6);
  EXPECT_NEAR(part[2 * 12345], 0, 1e-6);
}

}  // namespace
}  // namespace autograph

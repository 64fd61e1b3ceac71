#include "data/draws.h"

#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace autograph {
namespace {

// Numbers of a loader are others than those of ops that were given the same seed.
constexpr uint64_t kLoaderSeed = 0x6C6F61642D646174;

// Blocks of one purpose; none needs more than a few.
constexpr uint32_t kBlocksPerPurpose = 1 << 20;

}  // namespace

Draws::Draws(uint64_t seed, int64_t epoch, int64_t sample, uint32_t purpose)
    : stream_{seed ^ kLoaderSeed, static_cast<uint64_t>(sample), static_cast<uint32_t>(epoch)},
      block_(purpose * kBlocksPerPurpose) {}

uint64_t Draws::bits() {
  const auto words = stream_.block(block_++);
  return (uint64_t{words[0]} << 32) | words[1];
}

double Draws::uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }

int64_t Draws::below(int64_t count) {
  using Wide = unsigned __int128;
  return static_cast<int64_t>((static_cast<Wide>(bits()) * static_cast<Wide>(count)) >> 64);
}

double Draws::normal() {
  const double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

// The logarithm of a Gamma(shape, 1) variate: Marsaglia and Tsang, A simple method for generating gamma variables
// (2000). Logarithms, because for small shapes the variate itself is often 0 in f64.
double Draws::log_gamma_variate(double shape) {
  if (shape < 1) return log_gamma_variate(shape + 1) + std::log(1 - uniform()) / shape;
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double root = 1 + c * x;
    const double u = 1 - uniform();
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) return std::log(d) + std::log(v);
  }
}

double Draws::beta(double alpha) {
  const double a = log_gamma_variate(alpha), b = log_gamma_variate(alpha);
  return 1 / (1 + std::exp(b - a));
}

std::vector<int64_t> draw_order(int64_t size, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = size - 1; i > 0; --i) {
    const int64_t other = Draws(seed, epoch, i, kOrderPurpose).below(i + 1);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(other)]);
  }
  return order;
}

}  // namespace autograph

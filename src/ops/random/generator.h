// The random numbers of the random ops: a 64-bit Mersenne twister and distributions spelled out here, so that a seed
// gives the same numbers with every standard library.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "autograph/attribute.h"

namespace autograph {

/// Draws from the distributions that the random ops need.
class Generator {
 public:
  /// Seeded by attribute `seed` (real or integer) when it is there, else by the operating system.
  explicit Generator(const Attributes& attributes) : engine_(seed_of(attributes)) {}

  /// In [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }

  /// Mean 0, variance 1: the Box-Muller transform. 1 - uniform() is in (0, 1], so that the logarithm is finite.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static uint64_t seed_of(const Attributes& attributes) {
    if (const AttributeValue* seed = attributes.find("seed")) {
      if (const float* real = std::get_if<float>(seed)) return std::bit_cast<uint32_t>(*real);
      return static_cast<uint64_t>(std::get<int64_t>(*seed));
    }
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
  }

  std::mt19937_64 engine_;
};

}  // namespace autograph

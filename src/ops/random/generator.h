// The random numbers of the random ops that are seeded by an attribute: one Philox stream and distributions spelled out
// here, so that a seed gives the same numbers with every standard library.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

#include "autograph/attribute.h"
#include "ops/random/philox.h"

namespace autograph {

/// Draws from the distributions that the random ops need.
class Generator {
 public:
  /// Seeded by attribute `seed` (real or integer) when it is there, else by the operating system.
  explicit Generator(const Attributes& attributes) : Generator(seed_of(attributes)) {}

  /// In [0, 1), with 53 random bits.
  double uniform() {
    if (num_drawn_ % 2 == 0) {
      const uint64_t number = num_drawn_ / 2;
      words_ = philox({static_cast<uint32_t>(number), static_cast<uint32_t>(number >> 32), 0, 0}, key_);
    }
    const size_t first = num_drawn_++ % 2 * 2;
    return unit_interval(words_[first], words_[first + 1]);
  }

  /// Mean 0, variance 1: the Box-Muller transform. 1 - uniform() is in (0, 1], so that the logarithm is finite.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  explicit Generator(uint64_t seed) : key_{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)} {}

  static uint64_t seed_of(const Attributes& attributes) {
    if (const AttributeValue* seed = attributes.find("seed")) {
      if (const float* real = std::get_if<float>(seed)) return std::bit_cast<uint32_t>(*real);
      return static_cast<uint64_t>(std::get<int64_t>(*seed));
    }
    std::random_device device;
    return (static_cast<uint64_t>(device()) << 32) | device();
  }

  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> words_{};
  uint64_t num_drawn_ = 0;
};

}  // namespace autograph

// Philox4x32-10: random numbers as a function of a counter and a key, so that any of them can be computed by itself, on
// any device, in any order. Salmon, Moraes, Dror, Shaw: Parallel random numbers, as easy as 1, 2, 3 (SC 2011).
#pragma once

#include <array>
#include <cstdint>

namespace autograph {

/// The 128 random bits that belong to `counter` under `key`.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  constexpr uint64_t kMultipliers[] = {0xD2511F53, 0xCD9E8D57};
  constexpr uint32_t kWeyl[] = {0x9E3779B9, 0xBB67AE85};  // the golden ratio, the square root of 3 less 1
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = kMultipliers[0] * counter[0];
    const uint64_t b = kMultipliers[1] * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key = {key[0] + kWeyl[0], key[1] + kWeyl[1]};
  }
  return counter;
}

/// Whose numbers: those of op `id` in step `step` of what was seeded with `seed`.
struct PhiloxStream {
  uint64_t seed = 0;
  uint64_t step = 0;
  uint32_t id = 0;

  /// Four words of 32 random bits; no two blocks of streams with the same seed have the same counter.
  constexpr std::array<uint32_t, 4> block(uint32_t number) const {
    return philox({number, static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32), id},
                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
};

/// In [0, 1), a multiple of 2^-24: exact in f32.
constexpr double unit_interval(uint32_t bits) { return static_cast<double>(bits >> 8) * 0x1p-24; }

/// In [0, 1), a multiple of 2^-53: exact in f64.
constexpr double unit_interval(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

}  // namespace autograph

// A 128-bit hash value, as returned by `structural_hash`.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace autograph {

/// 128 bits of hash; equal hashes mean equal things up to a chance of about 2^-64.
struct Hash128 {
  uint64_t low = 0;   ///< Low half.
  uint64_t high = 0;  ///< High half.
  auto operator<=>(const Hash128&) const = default;
};

/// 32 lower-case hexadecimal digits.
std::string to_string(const Hash128& hash);

}  // namespace autograph

/// Lets Hash128 be a key of unordered containers.
template <>
struct std::hash<autograph::Hash128> {
  size_t operator()(const autograph::Hash128& hash) const noexcept { return hash.low; }
};

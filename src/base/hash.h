// 128-bit hashes (XXH3) for structural equality and cache keys. Not for integrity against an attacker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "autograph/hash.h"

namespace autograph {

/// Hash of raw bytes.
Hash128 hash_bytes(const void* data, size_t size);

/// The hash whose to_string() is `text`; nothing where it is none's.
std::optional<Hash128> read_hash(std::string_view text);

/// Order-dependent accumulation of values into one hash.
class Hasher {
 public:
  Hasher& add(const Hash128& value);
  Hasher& add(std::string_view value);
  Hasher& add(int64_t value);
  Hash128 finish() const { return state_; }

 private:
  Hash128 state_{0x9E3779B97F4A7C15ULL, 0xC2B2AE3D27D4EB4FULL};
};

}  // namespace autograph

#include "base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

namespace autograph {

Hash128 hash_bytes(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.low64, h.high64};
}

Hasher& Hasher::add(const Hash128& value) {
  const uint64_t words[4] = {state_.low, state_.high, value.low, value.high};
  state_ = hash_bytes(words, sizeof words);
  return *this;
}

Hasher& Hasher::add(std::string_view value) { return add(hash_bytes(value.data(), value.size())); }

Hasher& Hasher::add(int64_t value) { return add(hash_bytes(&value, sizeof value)); }

std::string to_string(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

}  // namespace autograph

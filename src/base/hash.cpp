#include "base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <charconv>

namespace autograph {

Hash128 hash_bytes(const void* data, size_t size) {
  const XXH128_hash_t h = XXH3_128bits(data, size);
  return {h.low64, h.high64};
}

std::optional<Hash128> read_hash(std::string_view text) {
  constexpr size_t kDigits = 16;
  Hash128 hash;
  const auto read = [&](size_t at, uint64_t& word) {
    const char* end = text.data() + at + kDigits;
    return std::from_chars(text.data() + at, end, word, 16).ptr == end;
  };
  const bool is_hash = text.size() == 2 * kDigits && read(0, hash.high) && read(kDigits, hash.low);
  return is_hash ? std::optional(hash) : std::nullopt;
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

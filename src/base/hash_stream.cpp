#include "base/hash_stream.h"

#include <xxhash.h>

#include "base/check.h"

namespace autograph {

struct HashStream::State {
  XXH3_state_t* stream = XXH3_createState();
  State() { AG_CHECK(stream && XXH3_128bits_reset(stream) == XXH_OK, "xxhash"); }
  ~State() { XXH3_freeState(stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
};

HashStream::HashStream() : state_(std::make_unique<State>()) {}
HashStream::~HashStream() = default;

void HashStream::add(std::string_view bytes) {
  if (!bytes.empty()) AG_CHECK(XXH3_128bits_update(state_->stream, bytes.data(), bytes.size()) == XXH_OK, "xxhash");
}

Hash128 HashStream::finish() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_->stream);
  return {h.low64, h.high64};
}

}  // namespace autograph

// hash_bytes() of bytes that come in pieces.
#pragma once

#include <memory>
#include <string_view>

#include "autograph/hash.h"

namespace autograph {

class HashStream {
 public:
  HashStream();
  ~HashStream();
  void add(std::string_view bytes);
  /// Of all bytes so far.
  Hash128 finish() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace autograph

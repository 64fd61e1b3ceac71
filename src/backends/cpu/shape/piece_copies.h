// Copying many pieces of a few bytes, compiled for several instruction sets: a call of memcpy for each takes longer
// than the bytes of most.
#pragma once

#include <cstdint>

namespace autograph {

/// `count` pieces of `bytes`, that lie `to_step` and `from_step` bytes apart.
struct Pieces {
  char* to;
  int64_t to_step;
  const char* from;
  int64_t from_step;
  int64_t bytes;
  int64_t count;
};

void copy_pieces(const Pieces& pieces);

}  // namespace autograph

// Arenas between runs. Plans that one executable makes for several shapes run in the same memory: what one of them has
// touched the next need not ask the system for again, which costs as much as running.
#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "autograph/tensor.h"

namespace autograph {

/// As many arenas as runs at a time have needed. Any number of threads may call it at once.
class ArenaPool {
 public:
  /// An arena of `bytes` or more that nobody else has: the one that begins at `last` where it is free (nothing has to
  /// be bound anew then), else the smallest that is large enough, else a new one in place of the largest.
  /// `memory` is where they lie, the same for all; null: the host's.
  Tensor take(size_t bytes, const void* last, const Memory* memory = nullptr);
  /// Ends what take() began.
  void give_back(Tensor arena);

 private:
  Tensor make_new(size_t bytes, const Memory* memory);

  std::mutex mutex_;  // guards idle_
  std::vector<Tensor> idle_;
};

}  // namespace autograph

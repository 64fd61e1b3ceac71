// Memory of a device for what is made again and again in the same sizes and handed to callers, who let go of it later.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "autograph/buffer.h"

namespace autograph {

/// Buffers that nobody holds any more, for the next ones of the same sizes. Thread-safe; what was given may live longer
/// than the pool.
class BufferPool {
 public:
  explicit BufferPool(const Memory* memory);

  /// A buffer of each size, uninitialised, which nobody else holds: where there are idle ones those, each in the place
  /// where it was before, else new ones. `most_bytes` is what these and the idle ones may have together; of the latter
  /// there are never more than twice as many as were asked for at once. Throws BudgetError when there is no more
  /// memory.
  std::vector<Buffer> take(std::span<const size_t> sizes, size_t most_bytes);
  size_t idle_bytes() const;

  /// Frees what is idle in all pools of `memory`, for those who find no room there; false where nothing was.
  static bool free_idle(const Memory* memory);

 private:
  class Idle;
  class Registry;
  const Memory* memory_;
  std::shared_ptr<Idle> idle_;
};

}  // namespace autograph

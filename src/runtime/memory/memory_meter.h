// Counts what one run allocates besides its planned arena, and refuses before memory runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>

#include "autograph/tensor.h"

namespace autograph {

/// Bytes that can still be allocated on this machine, control group included. For little that is `wanted` nobody asks:
/// then it is any number.
size_t available_memory_bytes(size_t wanted = std::numeric_limits<size_t>::max());

/// Shared by a run and the nested runs inside it; tensors give their bytes back when they die.
class MemoryMeter : public std::enable_shared_from_this<MemoryMeter> {
 public:
  /// `limit_bytes` 0 = no limit but the machine's.
  MemoryMeter(size_t limit_bytes, size_t used_bytes) : limit_bytes_(limit_bytes), used_bytes_(used_bytes) {}

  /// A new tensor in `memory` (null: the host's); throws BudgetError before allocating when it would exceed the limit.
  Tensor allocate(DType dtype, Dims dims, const Memory* memory = nullptr);
  size_t used_bytes() const { return used_bytes_; }

 private:
  void take(size_t bytes, DType dtype, const Dims& dims, bool is_on_host);
  const size_t limit_bytes_;
  std::atomic<size_t> used_bytes_;
};

}  // namespace autograph

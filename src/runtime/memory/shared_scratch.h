// Working memory on the host that kernels of a run use one after the other: fresh memory costs more than to work in it.
#pragma once

#include <cstdint>
#include <mutex>
#include <utility>

#include "autograph/tensor.h"

namespace autograph {

/// Keeps one piece, the largest that was asked for. Thread-safe: who finds none gets one of its own.
class SharedScratch {
 public:
  Tensor take(int64_t bytes) {
    {
      const std::lock_guard lock(mutex_);
      if (kept_.is_present() && kept_.num_elements() >= bytes) return std::exchange(kept_, Tensor());
    }
    return Tensor::empty(DType::u8, {bytes});
  }

  void give_back(Tensor piece) {
    const std::lock_guard lock(mutex_);
    if (!kept_.is_present() || kept_.num_elements() < piece.num_elements()) std::swap(kept_, piece);
  }

 private:
  std::mutex mutex_;
  Tensor kept_;
};

}  // namespace autograph

// The memory of a CUDA device, and memory of the host that the device reads and writes by itself.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "autograph/buffer.h"
#include "backends/cuda/libraries/abi.h"

namespace autograph::cuda {

class Machine;

/// Addresses are those of the device: the host ends with a fault where it follows one.
class CudaMemory : public Memory {
 public:
  explicit CudaMemory(const Machine& machine) : machine_(machine) {}

  const std::string& name() const override;
  std::shared_ptr<void> allocate(size_t bytes) const override;
  void write(void* to, const void* from_host, size_t bytes, Stream* stream) const override;
  void read(void* to_host, const void* from, size_t bytes, Stream* stream) const override;
  void copy(void* to, const void* from, size_t bytes, Stream* stream) const override;
  std::shared_ptr<void> allocate_for_transfers(size_t bytes) const override;
  bool is_for_transfers(const void* host, size_t bytes) const override;

 private:
  const Machine& machine_;
  mutable std::mutex mutex_;                         // guards page_locked_
  mutable std::map<uintptr_t, size_t> page_locked_;  // what allocate_for_transfers() gave: address -> bytes
};

/// Page-locked memory of the host, zeros, with the same address on host and device. Throws BudgetError when there is no
/// more.
std::shared_ptr<void> allocate_pinned(const Machine& machine, size_t bytes);

/// Page-locked memory that copies of a stream pass through, so that the host goes on while they run. Each part is used
/// once between two waits; the memory grows at a wait when it was too small before.
class Staging {
 public:
  explicit Staging(const Machine& machine) : machine_(machine) {}

  /// Room for `bytes` until reset(); null where there is none: then the driver copies as it can.
  void* take(size_t bytes);
  /// All copies are over.
  void reset();

 private:
  const Machine& machine_;
  std::shared_ptr<void> memory_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  size_t wanted_ = 0;  // since the last reset
};

}  // namespace autograph::cuda

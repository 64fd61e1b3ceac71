// Memory: of the host, or of a device that has its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace autograph {

class Stream;

/// Memory that the host cannot read: that of a device, or of several devices which share it. The host's memory is no
/// object of this class but a null pointer, so that devices that compute there need no copies.
/// Copies with a stream are enqueued on it, and memory of the host must stay until they are over; without one they are
/// over on return. Any number of threads may call at once.
class Memory {
 public:
  virtual ~Memory() = default;
  /// How messages name it: that of its device.
  virtual const std::string& name() const = 0;
  /// Uninitialised, 64-byte aligned; nothing when `bytes` is 0. Throws BudgetError when there is no more.
  virtual std::shared_ptr<void> allocate(size_t bytes) const = 0;
  /// From the host to here.
  virtual void write(void* to, const void* from_host, size_t bytes, Stream* stream) const = 0;
  /// From here to the host.
  virtual void read(void* to_host, const void* from, size_t bytes, Stream* stream) const = 0;
  /// From here to here; what is read and what is written do not overlap.
  virtual void copy(void* to, const void* from, size_t bytes, Stream* stream) const = 0;
  /// Memory of the host from which and to which copies are fastest, and may be part of what a stream captures:
  /// page-locked memory, where there is such. That of all tensors, unless a device has better.
  virtual std::shared_ptr<void> allocate_for_transfers(size_t bytes) const;
  /// Does memory of the host come from there?
  virtual bool is_for_transfers(const void* host, size_t bytes) const;
};

/// A piece of memory and who owns it. Copies are further handles on it.
class Buffer {
 public:
  /// None.
  Buffer() = default;
  /// Borrows `data`, which lies in `memory` (null: the host's); `owner` keeps it alive (may be null).
  Buffer(const Memory* memory, void* data, size_t bytes, std::shared_ptr<const void> owner)
      : memory_(memory), data_(data), bytes_(bytes), owner_(std::move(owner)) {}
  /// Uninitialised, 64-byte aligned. Throws BudgetError when there is no more.
  static Buffer allocate(size_t bytes, const Memory* memory = nullptr);

  /// Of the host, as Memory::allocate_for_transfers() has it.
  static Buffer for_transfers(size_t bytes, const Memory& device);

  /// Null: the host's.
  const Memory* memory() const { return memory_; }
  bool is_on_host() const { return memory_ == nullptr; }
  /// An address in memory(): the host may follow it only where is_on_host().
  void* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }
  /// `bytes` of it from `offset` on, with the same owner. Of the host's memory alone.
  Buffer part(size_t offset, size_t bytes) const {
    return {memory_, static_cast<char*>(data_) + offset, bytes, owner_};
  }

 private:
  const Memory* memory_ = nullptr;
  void* data_ = nullptr;
  size_t bytes_ = 0;
  std::shared_ptr<const void> owner_;
};

/// Copies `bytes` from the beginning of one buffer to that of another, wherever both lie; by way of the host where they
/// lie in the memory of two devices. With a stream as Memory has it; then one of them lies on the host, or both in one.
void copy_bytes(const Buffer& to, const Buffer& from, size_t bytes, Stream* stream = nullptr);

}  // namespace autograph

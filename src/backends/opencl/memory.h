// The memory of an OpenCL device.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "autograph/buffer.h"
#include "backends/opencl/api.h"

namespace autograph::opencl {

/// Where an address lies.
struct Location {
  cl_mem buffer = nullptr;
  size_t offset = 0;  ///< Bytes.
};

/// Buffers of OpenCL have no addresses, so that they get some: numbers that are no addresses of any processor, each
/// given once. Whoever follows one on the host ends with a fault, and one that was freed is found out.
class OpenClMemory : public Memory {
 public:
  /// `queue` is for copies that are over on return; `max_bytes` is what one buffer may have.
  OpenClMemory(std::string name, cl_context context, cl_command_queue queue, size_t max_bytes);

  const std::string& name() const override { return name_; }
  std::shared_ptr<void> allocate(size_t bytes) const override;
  void write(void* to, const void* from_host, size_t bytes, Stream* stream) const override;
  void read(void* to_host, const void* from, size_t bytes, Stream* stream) const override;
  void copy(void* to, const void* from, size_t bytes, Stream* stream) const override;

  /// Throws InternalError for an address that allocate() did not give, or that was freed.
  Location locate(const void* address) const;

 private:
  struct Piece {
    cl_mem buffer;
    size_t bytes;
  };

  void free(uintptr_t address) const;
  cl_command_queue queue_of(Stream* stream) const;

  std::string name_;
  cl_context context_;
  cl_command_queue queue_;
  size_t max_bytes_;
  mutable std::mutex mutex_;  // guards the rest
  mutable std::map<uintptr_t, Piece> pieces_;
  mutable uintptr_t next_;
};

}  // namespace autograph::opencl

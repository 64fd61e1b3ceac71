#include "backends/opencl/memory.h"

#include <fmt/core.h>

#include <bit>

#include "autograph/error.h"
#include "backends/opencl/stream.h"
#include "base/aligned_size.h"
#include "base/check.h"

namespace autograph::opencl {
namespace {

// No processor of this project maps addresses between 2^57 and -2^57.
constexpr uintptr_t kFirst = uintptr_t{1} << 60;

}  // namespace

OpenClMemory::OpenClMemory(std::string name, cl_context context, cl_command_queue queue, size_t max_bytes)
    : name_(std::move(name)), context_(context), queue_(queue), max_bytes_(max_bytes), next_(kFirst) {}

std::shared_ptr<void> OpenClMemory::allocate(size_t bytes) const {
  if (bytes == 0) return nullptr;
  cl_int code = bytes <= max_bytes_ ? CL_SUCCESS : CL_INVALID_BUFFER_SIZE;
  cl_mem buffer =
      code == CL_SUCCESS ? api().clCreateBuffer(context_, CL_MEM_READ_WRITE, bytes, nullptr, &code) : nullptr;
  if (code != CL_SUCCESS) {
    throw BudgetError(fmt::format("[{}] memory: no room for {} bytes: {} (one buffer has at most {})", name_, bytes,
                                  error_name(code), max_bytes_));
  }
  const std::lock_guard lock(mutex_);
  const uintptr_t address = next_;
  next_ += aligned_size(bytes + kMemoryAlignment);  // with a gap, so that an end is no beginning
  pieces_.emplace(address, Piece{buffer, bytes});
  return {std::bit_cast<void*>(address), [this](void* p) { free(reinterpret_cast<uintptr_t>(p)); }};
}

// OpenCL keeps a buffer until what was enqueued with it is over.
void OpenClMemory::free(uintptr_t address) const {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.find(address);
  api().clReleaseMemObject(piece->second.buffer);
  pieces_.erase(piece);
}

Location OpenClMemory::locate(const void* address) const {
  const auto at = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  auto piece = pieces_.upper_bound(at);
  AG_CHECK(piece != pieces_.begin(), "[{}] memory: {:#x} was never allocated", name_, at);
  --piece;
  AG_CHECK(at - piece->first < piece->second.bytes, "[{}] memory: {:#x} was freed or never allocated", name_, at);
  return {piece->second.buffer, at - piece->first};
}

cl_command_queue OpenClMemory::queue_of(Stream* stream) const {
  return stream ? static_cast<OpenClStream&>(*stream).queue() : queue_;
}

void OpenClMemory::write(void* to, const void* from_host, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  const Location at = locate(to);
  check(api().clEnqueueWriteBuffer(queue_of(stream), at.buffer, stream ? CL_FALSE : CL_TRUE, at.offset, bytes,
                                   from_host, 0, nullptr, nullptr),
        "clEnqueueWriteBuffer");
}

void OpenClMemory::read(void* to_host, const void* from, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  const Location at = locate(from);
  check(api().clEnqueueReadBuffer(queue_of(stream), at.buffer, stream ? CL_FALSE : CL_TRUE, at.offset, bytes, to_host,
                                  0, nullptr, nullptr),
        "clEnqueueReadBuffer");
}

void OpenClMemory::copy(void* to, const void* from, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  const Location source = locate(from);
  const Location target = locate(to);
  check(api().clEnqueueCopyBuffer(queue_of(stream), source.buffer, target.buffer, source.offset, target.offset, bytes,
                                  0, nullptr, nullptr),
        "clEnqueueCopyBuffer");
  if (!stream) check(api().clFinish(queue_), "clFinish");
}

}  // namespace autograph::opencl

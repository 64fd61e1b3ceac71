#include "runtime/memory/memory_meter.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

#include "base/check.h"
#include "runtime/threads/cgroup_file.h"
#include "tensor/size_of.h"

namespace autograph {
namespace {

// A number from a control file; `otherwise` when it holds none ("max").
size_t parse_bytes(const std::string& text, size_t otherwise) {
  size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : otherwise;
}

size_t meminfo_available() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kibibytes = 0;
  std::string unit;
  while (file >> key >> kibibytes) {
    if (key == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return std::numeric_limits<size_t>::max();
}

}  // namespace

size_t available_memory_bytes(size_t wanted) {
  // Reading /proc takes 0.1 ms.
  constexpr size_t kSmallBytes = size_t{16} << 20;
  if (wanted <= kSmallBytes) return std::numeric_limits<size_t>::max();
  constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();
  const size_t limit = parse_bytes(read_cgroup_file("memory.max"), kUnlimited);
  size_t available = meminfo_available();
  if (limit != kUnlimited) {
    const size_t current = parse_bytes(read_cgroup_file("memory.current"), 0);
    available = std::min(available, limit > current ? limit - current : 0);
  }
  return available;
}

void MemoryMeter::take(size_t bytes, DType dtype, const Dims& dims, bool is_on_host) {
  const size_t used = used_bytes_ += bytes;
  const bool over_limit = limit_bytes_ > 0 && used > limit_bytes_;
  const bool over_machine = is_on_host && bytes > available_memory_bytes(bytes);
  if (!over_limit && !over_machine) return;
  used_bytes_ -= bytes;
  throw BudgetError(fmt::format(
      "[memory] tensor {}{}: {} bytes on top of {} exceed {}", to_string(dtype), to_string(dims), bytes, used - bytes,
      over_limit ? fmt::format("the budget of {} bytes", limit_bytes_) : std::string("the memory that is available")));
}

Tensor MemoryMeter::allocate(DType dtype, Dims dims, const Memory* memory) {
  for (const int64_t d : dims) {
    AG_CHECK_USER(d >= 0, ShapeError, "[memory] tensor: expected dims of 0 or more, got {}", to_string(dims));
  }
  const size_t bytes = size_of(Type(dtype, Shape::of(dims)));
  take(bytes, dtype, dims, !memory);
  // Owns the buffer and returns its bytes to the meter. Made before the buffer, so that a failure returns them too.
  struct Lease {
    Lease(std::shared_ptr<MemoryMeter> m, size_t b) : meter(std::move(m)), bytes(b) {}
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease() { meter->used_bytes_ -= bytes; }
    std::shared_ptr<MemoryMeter> meter;
    size_t bytes;
    Tensor tensor;
  };
  const auto lease = std::make_shared<Lease>(shared_from_this(), bytes);
  lease->tensor = Tensor::empty(dtype, dims, memory);
  const Buffer& buffer = lease->tensor.buffer();
  return Tensor::wrap(dtype, std::move(dims), Buffer(memory, buffer.data(), buffer.size_bytes(), lease));
}

}  // namespace autograph

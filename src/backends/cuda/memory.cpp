#include "backends/cuda/memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "autograph/error.h"
#include "backends/cuda/machine.h"
#include "backends/cuda/stream.h"
#include "base/aligned_size.h"

namespace autograph::cuda {
namespace {

// Page-locked memory is taken from all programs of the machine: larger copies are the driver's business.
constexpr size_t kMostStaging = size_t{32} << 20;
constexpr size_t kLeastStaging = size_t{256} << 10;

CUdeviceptr device_address(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace

const std::string& CudaMemory::name() const { return machine_.name(); }

std::shared_ptr<void> CudaMemory::allocate(size_t bytes) const {
  if (bytes == 0) return nullptr;
  machine_.make_current();
  CUdeviceptr address = 0;
  const CUresult code = driver().cuMemAlloc_v2(&address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    size_t free = 0;
    size_t total = 0;
    driver().cuMemGetInfo_v2(&free, &total);
    throw BudgetError(fmt::format("[{}] memory: no room for {} bytes: {} are free of {}", name(), bytes, free, total));
  }
  machine_.check(code, "cuMemAlloc");
  // The driver waits for what still uses the memory.
  return {std::bit_cast<void*>(address), [this](void* p) {
            machine_.make_current();
            driver().cuMemFree_v2(device_address(p));
          }};
}

void CudaMemory::write(void* to, const void* from_host, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  if (stream) return static_cast<CudaStream*>(stream)->write(device_address(to), from_host, bytes);
  machine_.copy_now(
      [&](CUstream own) { return driver().cuMemcpyHtoDAsync_v2(device_address(to), from_host, bytes, own); });
}

void CudaMemory::read(void* to_host, const void* from, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  if (stream) return static_cast<CudaStream*>(stream)->read(to_host, device_address(from), bytes);
  machine_.copy_now(
      [&](CUstream own) { return driver().cuMemcpyDtoHAsync_v2(to_host, device_address(from), bytes, own); });
}

void CudaMemory::copy(void* to, const void* from, size_t bytes, Stream* stream) const {
  if (bytes == 0) return;
  if (stream) return static_cast<CudaStream*>(stream)->copy(device_address(to), device_address(from), bytes);
  machine_.copy_now([&](CUstream own) {
    return driver().cuMemcpyDtoDAsync_v2(device_address(to), device_address(from), bytes, own);
  });
}

std::shared_ptr<void> CudaMemory::allocate_for_transfers(size_t bytes) const {
  if (bytes == 0) return nullptr;
  std::shared_ptr<void> memory = allocate_pinned(machine_, bytes);
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  {
    const std::lock_guard lock(mutex_);
    page_locked_[address] = bytes;
  }
  void* const data = memory.get();
  return {data, [this, address, memory = std::move(memory)](void*) {
            const std::lock_guard lock(mutex_);
            page_locked_.erase(address);
          }};
}

bool CudaMemory::is_for_transfers(const void* host, size_t bytes) const {
  const auto address = reinterpret_cast<uintptr_t>(host);
  const std::lock_guard lock(mutex_);
  auto piece = page_locked_.upper_bound(address);
  if (piece == page_locked_.begin()) return false;
  --piece;
  return address - piece->first + bytes <= piece->second;
}

std::shared_ptr<void> allocate_pinned(const Machine& machine, size_t bytes) {
  machine.make_current();
  void* memory = nullptr;
  const CUresult code = driver().cuMemHostAlloc(&memory, bytes, 0);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    throw BudgetError(fmt::format("[{}] memory: no {} bytes of page-locked memory", machine.name(), bytes));
  }
  machine.check(code, "cuMemHostAlloc");
  std::memset(memory, 0, bytes);
  return {memory, [&machine](void* p) {
            machine.make_current();
            driver().cuMemFreeHost(p);
          }};
}

void* Staging::take(size_t bytes) {
  wanted_ += aligned_size(bytes);
  if (used_ + bytes > capacity_) return nullptr;
  void* part = static_cast<char*>(memory_.get()) + used_;
  used_ += aligned_size(bytes);
  return part;
}

void Staging::reset() {
  const size_t wanted = std::min(std::bit_ceil(std::max(wanted_, kLeastStaging)), kMostStaging);
  const bool grows = wanted_ > capacity_ && wanted > capacity_;
  used_ = 0;
  wanted_ = 0;
  if (!grows) return;
  memory_.reset();
  capacity_ = 0;
  memory_ = allocate_pinned(machine_, wanted);
  capacity_ = wanted;
}

}  // namespace autograph::cuda

#include "autograph/buffer.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <vector>

#include "base/check.h"
#include "tensor/block_pool.h"
#include "tensor/buffer_pool.h"
#include "tensor/spare_bytes.h"

namespace autograph {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kHugePage = size_t{2} << 20;

// Large pages where the system gives them: a walk through weights misses the translation cache less, and memory is
// there after fewer page faults. What does not fill a large page stays in small ones, so that no memory is wasted.
void ask_for_large_pages([[maybe_unused]] void* memory, [[maybe_unused]] size_t size) {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, size / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

std::shared_ptr<void> allocate_on_host(size_t size) {
  if (size + kSpareBytes <= kMaxPooledBytes) {
    std::shared_ptr<void> pooled = allocate_pooled(size + kSpareBytes);
    AG_CHECK_USER(pooled != nullptr, BudgetError, "[tensor] memory: {} bytes are not available", size);
    return pooled;
  }
  const bool is_large = size >= kHugePage;
  const std::align_val_t alignment = is_large ? std::align_val_t{kHugePage} : kAlignment;
  void* memory = ::operator new(size + kSpareBytes, alignment, std::nothrow);
  AG_CHECK_USER(memory != nullptr, BudgetError, "[tensor] memory: {} bytes are not available", size);
  if (is_large) ask_for_large_pages(memory, size);
  return {memory, [alignment](void* p) { ::operator delete(p, alignment); }};
}

// What is kept for outputs to come is less than what is needed now.
std::shared_ptr<void> allocate_on_device(size_t size, const Memory& memory) {
  try {
    return memory.allocate(size);
  } catch (const BudgetError&) {
    if (!BufferPool::free_idle(&memory)) throw;
  }
  return memory.allocate(size);
}

}  // namespace

std::shared_ptr<void> Memory::allocate_for_transfers(size_t bytes) const { return allocate_on_host(bytes); }

bool Memory::is_for_transfers(const void* host, size_t bytes) const {
  static_cast<void>(host);
  static_cast<void>(bytes);
  return true;
}

Buffer Buffer::for_transfers(size_t bytes, const Memory& device) {
  std::shared_ptr<void> owner = device.allocate_for_transfers(bytes);
  void* const data = owner.get();
  return {nullptr, data, bytes, std::move(owner)};
}

Buffer Buffer::allocate(size_t bytes, const Memory* memory) {
  std::shared_ptr<void> owner = memory ? allocate_on_device(bytes, *memory) : allocate_on_host(bytes);
  void* const data = owner.get();
  return {memory, data, bytes, std::move(owner)};
}

void copy_bytes(const Buffer& to, const Buffer& from, size_t bytes, Stream* stream) {
  if (bytes == 0) return;
  if (to.is_on_host() && from.is_on_host()) {
    std::memmove(to.data(), from.data(), bytes);
  } else if (from.is_on_host()) {
    to.memory()->write(to.data(), from.data(), bytes, stream);
  } else if (to.is_on_host()) {
    from.memory()->read(to.data(), from.data(), bytes, stream);
  } else if (to.memory() == from.memory()) {
    to.memory()->copy(to.data(), from.data(), bytes, stream);
  } else {
    AG_CHECK(!stream, "a copy from {} to {} cannot be enqueued", from.memory()->name(), to.memory()->name());
    std::vector<char> between(bytes);
    from.memory()->read(between.data(), from.data(), bytes, nullptr);
    to.memory()->write(to.data(), between.data(), bytes, nullptr);
  }
}

}  // namespace autograph

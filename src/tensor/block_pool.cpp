#include "tensor/block_pool.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

namespace autograph {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr size_t kUnit = 64;
// In front of the elements: the counts of their owner, or in a block that is kept the next one of its class.
constexpr size_t kHeader = kUnit;

// With the address sanitizer nothing is kept, so that it sees who uses what was freed.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

// Sizes are rounded up to three significant bits: at most a quarter is wasted, and 1 MiB is class 104.
struct SizeClass {
  explicit SizeClass(size_t bytes) {
    const size_t last = std::max<size_t>(bytes, 1) - 1;
    const size_t units = last / kUnit;
    const auto width = static_cast<size_t>(std::bit_width(units));
    const size_t shift = width > 3 ? width - 3 : 0;
    const size_t steps = (units >> shift) + 1;
    number = shift * 8 + steps;
    size = (steps << shift) * kUnit;
  }
  size_t number;
  size_t size;
};
constexpr size_t kNumClasses = 128;

struct FreeBlock {
  FreeBlock* next;
};

void give_back(void* block) { ::operator delete(block, kAlignment); }

// Values may go when the thread has ended its pool already: static ones, or those of other thread_local objects.
thread_local bool is_over = false;

class BlockPool {
 public:
  ~BlockPool() {
    drop_all();
    is_over = true;
  }

  void* take(const SizeClass& size_class) {
    FreeBlock*& first = free_[size_class.number];
    if (!first) return ::operator new(kHeader + size_class.size, kAlignment, std::nothrow);
    kept_bytes_ -= size_class.size;
    return std::exchange(first, first->next);
  }

  void keep(void* block, const SizeClass& size_class) {
    if (kept_bytes_ + size_class.size > kMaxKeptBytes) drop_all();
    FreeBlock*& first = free_[size_class.number];
    first = new (block) FreeBlock{first};
    kept_bytes_ += size_class.size;
  }

  size_t kept_bytes() const { return kept_bytes_; }

 private:
  void drop_all() {
    for (FreeBlock*& first : free_) {
      while (first) give_back(std::exchange(first, first->next));
    }
    kept_bytes_ = 0;
  }

  std::array<FreeBlock*, kNumClasses> free_{};
  size_t kept_bytes_ = 0;
};

BlockPool& pool() {
  thread_local BlockPool of_thread;
  return of_thread;
}

// Puts the owner's counts into the header of the block; where the last of them goes, so does the block.
template <class T>
struct InHeader {
  using value_type = T;
  void* block;
  size_t size;
  InHeader(void* of_block, size_t of_size) : block(of_block), size(of_size) {}
  template <class U>
  InHeader(const InHeader<U>& other) : block(other.block), size(other.size) {}  // NOLINT: as allocators convert
  T* allocate(size_t) {
    static_assert(sizeof(T) <= kHeader);
    static_assert(alignof(T) <= kUnit);
    return static_cast<T*>(block);
  }
  void deallocate(T*, size_t) noexcept {
    if (kKeeps && !is_over)
      pool().keep(block, SizeClass(size));
    else
      give_back(block);
  }
  template <class U>
  bool operator==(const InHeader<U>& other) const {
    return block == other.block;
  }
};

struct KeepElements {
  void operator()(void*) const {}
};

}  // namespace

std::shared_ptr<void> allocate_pooled(size_t size) {
  const SizeClass size_class(size);
  void* block = kKeeps && !is_over ? pool().take(size_class)
                                   : ::operator new(kHeader + size_class.size, kAlignment, std::nothrow);
  if (!block) return nullptr;
  return {static_cast<char*>(block) + kHeader, KeepElements(), InHeader<char>(block, size_class.size)};
}

size_t kept_bytes_of_thread() { return kKeeps && !is_over ? pool().kept_bytes() : 0; }

}  // namespace autograph

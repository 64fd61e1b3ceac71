#include "runtime/memory/arena_pool.h"

#include <algorithm>
#include <utility>

#include "autograph/error.h"

namespace autograph {
namespace {

// How many times the bytes wanted now are asked for where shapes have been seen to grow.
constexpr size_t kAhead = 4;

Tensor bytes_of(size_t count, const Memory* memory) {
  return Tensor::empty(DType::u8, {static_cast<int64_t>(count)}, memory);
}

bool is_smaller(const Tensor& a, const Tensor& b) { return a.size_bytes() < b.size_bytes(); }

}  // namespace

Tensor ArenaPool::take(size_t bytes, const void* last, const Memory* memory) {
  const std::lock_guard lock(mutex_);
  auto best = idle_.end();
  for (auto it = idle_.begin(); it != idle_.end(); ++it) {
    if (it->size_bytes() < bytes) continue;
    if (best == idle_.end() || is_smaller(*it, *best) || it->buffer().data() == last) best = it;
    if (it->buffer().data() == last) break;
  }
  if (best == idle_.end()) return make_new(bytes, memory);
  Tensor arena = std::move(*best);
  idle_.erase(best);
  return arena;
}

// Shapes that have grown once grow again. Of what is asked for ahead of need only what is used costs memory.
Tensor ArenaPool::make_new(size_t bytes, const Memory* memory) {
  if (idle_.empty()) return bytes_of(bytes, memory);
  idle_.erase(std::max_element(idle_.begin(), idle_.end(), is_smaller));
  try {
    return bytes_of(kAhead * bytes, memory);
  } catch (const BudgetError&) {
    return bytes_of(bytes, memory);
  }
}

void ArenaPool::give_back(Tensor arena) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(arena));
}

}  // namespace autograph

#include "tensor/buffer_pool.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

namespace autograph {
namespace {

// Those of a run are made while the caller still holds those of the run before.
constexpr size_t kTurns = 2;

struct IdleBuffer {
  Buffer buffer;
  size_t place = 0;  // among those that were asked for together
};

// Takes the first one that fits out of `idle`; the oldest ones come first, so that places come round in turn.
template <class Fits>
Buffer take_first(std::vector<IdleBuffer>& idle, const Fits& fits) {
  const auto found = std::find_if(idle.begin(), idle.end(), fits);
  if (found == idle.end()) return {};
  Buffer buffer = std::move(found->buffer);
  idle.erase(found);
  return buffer;
}

}  // namespace

// What is freed leaves the lock first: the memory of a device has locks of its own, and may wait.
class BufferPool::Idle {
 public:
  std::vector<Buffer> take(std::span<const size_t> sizes, size_t most_bytes) {
    const size_t wanted = std::accumulate(sizes.begin(), sizes.end(), size_t{0});
    std::vector<Buffer> taken(sizes.size());
    std::vector<IdleBuffer> dropped;
    const std::lock_guard lock(mutex_);
    for (size_t k = 0; k < sizes.size(); ++k) {
      taken[k] = take_first(
          idle_, [&](const IdleBuffer& each) { return each.place == k && each.buffer.size_bytes() == sizes[k]; });
    }
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (taken[k].data()) continue;
      taken[k] = take_first(idle_, [&](const IdleBuffer& each) { return each.buffer.size_bytes() == sizes[k]; });
    }
    most_count_ = kTurns * sizes.size();
    most_bytes_ = most_bytes;
    drop_beyond(most_bytes - std::min(wanted, most_bytes), dropped);
    return taken;
  }

  void give_back(IdleBuffer buffer) {
    std::vector<IdleBuffer> dropped;
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(buffer));
    drop_beyond(most_bytes_, dropped);
  }

  std::vector<IdleBuffer> take_all() {
    const std::lock_guard lock(mutex_);
    return std::exchange(idle_, {});
  }

  size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return sum_of_bytes();
  }

 private:
  size_t sum_of_bytes() const {
    size_t bytes = 0;
    for (const IdleBuffer& each : idle_) bytes += each.buffer.size_bytes();
    return bytes;
  }

  void drop_beyond(size_t most_bytes, std::vector<IdleBuffer>& dropped) {
    size_t bytes = sum_of_bytes();
    while (!idle_.empty() && (idle_.size() > most_count_ || bytes > most_bytes)) {
      bytes -= idle_.front().buffer.size_bytes();
      dropped.push_back(std::move(idle_.front()));
      idle_.erase(idle_.begin());
    }
  }

  mutable std::mutex mutex_;  // guards the rest
  std::vector<IdleBuffer> idle_;
  size_t most_count_ = 0;
  size_t most_bytes_ = 0;
};

// All pools of the process, by the memory that they are of.
class BufferPool::Registry {
 public:
  // Never destroyed: buffers may be let go of after main().
  static Registry& of_process() {
    static auto* registry = new Registry;
    return *registry;
  }

  void add(const Memory* memory, const std::shared_ptr<Idle>& idle) {
    const std::lock_guard lock(mutex_);
    std::erase_if(entries_, [](const Entry& entry) { return entry.idle.expired(); });
    entries_.push_back({memory, idle});
  }

  std::vector<std::shared_ptr<Idle>> of(const Memory* memory) {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Idle>> found;
    for (const Entry& entry : entries_) {
      if (entry.memory == memory) found.push_back(entry.idle.lock());
    }
    std::erase(found, nullptr);
    return found;
  }

 private:
  struct Entry {
    const Memory* memory;
    std::weak_ptr<Idle> idle;
  };
  std::mutex mutex_;  // guards entries_
  std::vector<Entry> entries_;
};

BufferPool::BufferPool(const Memory* memory) : memory_(memory), idle_(std::make_shared<Idle>()) {
  Registry::of_process().add(memory, idle_);
}

std::vector<Buffer> BufferPool::take(std::span<const size_t> sizes, size_t most_bytes) {
  std::vector<Buffer> taken = idle_->take(sizes, most_bytes);
  for (size_t k = 0; k < sizes.size(); ++k) {
    Buffer buffer = taken[k].data() ? std::move(taken[k]) : Buffer::allocate(sizes[k], memory_);
    void* const data = buffer.data();
    if (!data) continue;  // of no bytes
    // The last one who holds it gives it back, or frees it where there is no pool any more.
    auto give_back = [pool = std::weak_ptr<Idle>(idle_), idle = IdleBuffer{std::move(buffer), k}](const void*) mutable {
      if (const auto there = pool.lock()) there->give_back(std::move(idle));
    };
    taken[k] = Buffer(memory_, data, sizes[k], std::shared_ptr<const void>(data, std::move(give_back)));
  }
  return taken;
}

size_t BufferPool::idle_bytes() const { return idle_->bytes(); }

bool BufferPool::free_idle(const Memory* memory) {
  bool was_any = false;
  for (const std::shared_ptr<Idle>& idle : Registry::of_process().of(memory)) {
    was_any = !idle->take_all().empty() || was_any;
  }
  return was_any;
}

}  // namespace autograph

#include "schedule/memory/memory_plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <queue>

#include "base/aligned_size.h"
#include "base/check.h"
#include "schedule/memory/free_gaps.h"

namespace autograph {
namespace {

constexpr size_t kNowhere = std::numeric_limits<size_t>::max();
// How many freed blocks the recency rule looks at, and how much larger than the request such a block may be: a tiny
// tensor must not break up a large block.
constexpr size_t kRecentBlocks = 8;
constexpr size_t kMaxBlockRatio = 4;
// Above this number of tensors the quadratic attempt is not worth its time.
constexpr size_t kMaxForQuadratic = 4096;

struct Block {
  size_t begin = 0;
  size_t end = 0;
  uint32_t last_step = 0;
};

// The smallest gap between `blocks` (sorted by begin, may overlap) that ends at or below `limit` and holds `bytes`.
size_t find_best_gap(const std::vector<Block>& blocks, size_t bytes, size_t limit) {
  size_t best = kNowhere;
  size_t best_size = kNowhere;
  size_t cursor = 0;
  const auto consider = [&](size_t end) {
    if (end < cursor || end - cursor < bytes || end - cursor >= best_size) return;
    best = cursor;
    best_size = end - cursor;
  };
  for (const Block& block : blocks) {
    consider(std::min(block.begin, limit));
    cursor = std::max(cursor, block.end);
  }
  consider(limit);
  return best;
}

bool is_free(const std::vector<Block>& blocks, size_t begin, size_t end) {
  return std::none_of(blocks.begin(), blocks.end(),
                      [&](const Block& block) { return block.begin < end && begin < block.end; });
}

// Where the most recently freed of `freed` (most recent last) begins that `bytes` fit into and that is free; kNowhere
// when there is none.
template <typename IsFree>
size_t find_recent(const std::vector<Block>& freed, size_t bytes, size_t peak, const IsFree& is_free) {
  for (auto block = freed.rbegin(); block != freed.rend(); ++block) {
    const size_t end = block->begin + bytes;
    const bool fits_well = (block->end - block->begin) / kMaxBlockRatio <= bytes && end <= peak;
    if (fits_well && is_free(block->begin, end)) return block->begin;
  }
  return kNowhere;
}

// The best gap below `peak`, else right behind all `blocks`.
size_t find_gap_or_top(const std::vector<Block>& blocks, size_t bytes, size_t peak) {
  const size_t gap = find_best_gap(blocks, bytes, peak);
  if (gap != kNowhere) return gap;
  size_t top = 0;
  for (const Block& block : blocks) top = std::max(top, block.end);
  return top;
}

// Walks over the steps in order, keeping the blocks that are alive and those freed last.
class Sweep {
 public:
  explicit Sweep(bool prefer_recent) : prefer_recent_(prefer_recent) {}

  std::vector<size_t> run(std::span<const Lifetime> tensors, std::span<const size_t> order) {
    std::vector<size_t> offsets(tensors.size(), 0);
    for (const size_t t : order) {
      release_before(tensors[t].first_step);
      const size_t bytes = aligned_size(tensors[t].bytes);
      if (bytes == 0) continue;
      const size_t begin = choose(bytes);
      gaps_.take(begin, begin + bytes);
      alive_.push({begin, begin + bytes, tensors[t].last_step});
      offsets[t] = begin;
    }
    return offsets;
  }

  size_t peak() const { return gaps_.peak(); }

 private:
  struct EndsLater {
    bool operator()(const Block& a, const Block& b) const {
      return a.last_step != b.last_step ? a.last_step > b.last_step : a.begin > b.begin;
    }
  };

  void release_before(uint32_t step) {
    for (; !alive_.empty() && alive_.top().last_step < step; alive_.pop()) {
      gaps_.give_back(alive_.top().begin, alive_.top().end);
      freed_.push_back(alive_.top());
    }
    if (freed_.size() > kRecentBlocks) {
      freed_.erase(freed_.begin(), freed_.end() - static_cast<std::ptrdiff_t>(kRecentBlocks));
    }
  }

  size_t choose(size_t bytes) const {
    const auto is_free = [&](size_t begin, size_t end) { return gaps_.is_free(begin, end); };
    const size_t recent = prefer_recent_ ? find_recent(freed_, bytes, gaps_.peak(), is_free) : kNowhere;
    return recent != kNowhere ? recent : gaps_.find_best(bytes);
  }

  bool prefer_recent_;
  std::priority_queue<Block, std::vector<Block>, EndsLater> alive_;  // those that end first on top
  FreeGaps gaps_;
  std::vector<Block> freed_;  // most recent last
};

size_t max_alive_bytes(std::span<const Lifetime> tensors) {
  std::vector<std::pair<uint64_t, int64_t>> events;  // (step, change); frees come before allocations of the next step
  for (const Lifetime& tensor : tensors) {
    const auto bytes = static_cast<int64_t>(aligned_size(tensor.bytes));
    events.emplace_back(uint64_t{tensor.first_step}, bytes);
    events.emplace_back(uint64_t{tensor.last_step} + 1, -bytes);
  }
  std::sort(events.begin(), events.end());
  int64_t alive = 0;
  int64_t most = 0;
  for (const auto& [step, change] : events) most = std::max(most, alive += change);
  return static_cast<size_t>(most);
}

size_t sum_aligned(std::span<const size_t> bytes) {
  size_t sum = 0;
  for (const size_t b : bytes) {
    const bool overflow = __builtin_add_overflow(sum, aligned_size(b), &sum);
    AG_CHECK_USER(!overflow, BudgetError, "[memory] tensors: their sizes sum to more than 64 bits");
  }
  return sum;
}

// Tensors in the order of their first steps, larger ones first.
std::vector<size_t> order_of_first_use(std::span<const Lifetime> tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (tensors[a].first_step != tensors[b].first_step) return tensors[a].first_step < tensors[b].first_step;
    return tensors[a].bytes > tensors[b].bytes;
  });
  return order;
}

// Tensors that have their place, in a partial order: those that a later one may meet, and of the others, which it need
// not be asked about, the last that were freed.
class PlacedTensors {
 public:
  PlacedTensors(std::span<const Lifetime> tensors, const IsOver& is_over)
      : tensors_(tensors), is_over_(is_over), number_(tensors.size(), 0) {}

  /// Looks what is over when `step` comes, once in a while.
  void retire_before(uint32_t step) {
    if (!is_over_ || active_.size() < next_look_) return;
    std::erase_if(active_, [&](size_t t) {
      if (!is_over_(t, step)) return false;
      retired_.push_back(t);
      return true;
    });
    keep_recent(retired_);
    next_look_ = 2 * active_.size() + kTensorsPerLook;
  }
  void add(size_t tensor) {
    number_[tensor] = ++num_placed_;
    active_.push_back(tensor);
  }
  const std::vector<size_t>& active() const { return active_; }
  /// Of `freed`, which are active, and of those that are over: the last ones, most recent last.
  std::vector<size_t> most_recent(std::vector<size_t> freed) {
    freed.insert(freed.end(), retired_.begin(), retired_.end());
    keep_recent(freed);
    return freed;
  }

 private:
  static constexpr size_t kTensorsPerLook = 64;

  // By the step that ended them, then in the order in which they were placed.
  void keep_recent(std::vector<size_t>& freed) {
    std::sort(freed.begin(), freed.end(), [&](size_t a, size_t b) {
      const auto key = [&](size_t t) { return std::pair(tensors_[t].last_step, number_[t]); };
      return key(a) < key(b);
    });
    if (freed.size() <= kRecentBlocks) return;
    freed.erase(freed.begin(), freed.end() - static_cast<std::ptrdiff_t>(kRecentBlocks));
  }

  std::span<const Lifetime> tensors_;
  const IsOver& is_over_;
  std::vector<size_t> number_;  // by tensor: when it was placed
  size_t num_placed_ = 0;
  std::vector<size_t> active_;
  std::vector<size_t> retired_;
  size_t next_look_ = kTensorsPerLook;
};

// Only a plan that is clearly smaller is worth memory that is out of cache.
void take_if_smaller(MemoryPlan& plan, std::vector<size_t> offsets, size_t peak) {
  if (peak >= plan.peak_bytes - plan.peak_bytes / 16) return;
  plan.offsets = std::move(offsets);
  plan.peak_bytes = peak;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> tensors) {
  std::vector<size_t> sizes(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    AG_CHECK(tensors[i].first_step <= tensors[i].last_step, "tensor {} dies before it is made", i);
    sizes[i] = tensors[i].bytes;
  }
  MemoryPlan plan;
  plan.sum_bytes = sum_aligned(sizes);
  plan.lower_bound_bytes = max_alive_bytes(tensors);

  const std::vector<size_t> order = order_of_first_use(tensors);
  Sweep recent(true);
  plan.offsets = recent.run(tensors, order);
  plan.peak_bytes = recent.peak();
  if (plan.peak_bytes == plan.lower_bound_bytes) return plan;
  Sweep best_fit(false);
  std::vector<size_t> offsets = best_fit.run(tensors, order);
  take_if_smaller(plan, std::move(offsets), best_fit.peak());
  if (tensors.size() <= kMaxForQuadratic && plan.peak_bytes != plan.lower_bound_bytes) {
    MemoryPlan by_size = plan_memory(sizes, [&](size_t a, size_t b) {
      return tensors[a].first_step <= tensors[b].last_step && tensors[b].first_step <= tensors[a].last_step;
    });
    take_if_smaller(plan, std::move(by_size.offsets), by_size.peak_bytes);
  }
  return plan;
}

MemoryPlan plan_memory(std::span<const Lifetime> tensors, const AliveTogether& alive_together, const IsOver& is_over) {
  std::vector<size_t> sizes;
  for (const Lifetime& tensor : tensors) sizes.push_back(tensor.bytes);
  MemoryPlan plan;
  plan.sum_bytes = sum_aligned(sizes);
  plan.offsets.assign(tensors.size(), 0);
  PlacedTensors placed(tensors, is_over);
  const auto block_of = [&](size_t t) {
    return Block{plan.offsets[t], plan.offsets[t] + aligned_size(tensors[t].bytes), tensors[t].last_step};
  };
  for (const size_t t : order_of_first_use(tensors)) {
    const size_t bytes = aligned_size(tensors[t].bytes);
    if (bytes == 0) continue;
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, bytes);
    placed.retire_before(tensors[t].first_step);
    std::vector<Block> alive;
    std::vector<size_t> not_alive;
    for (const size_t other : placed.active()) {
      if (alive_together(t, other)) {
        alive.push_back(block_of(other));
      } else {
        not_alive.push_back(other);
      }
    }
    std::sort(alive.begin(), alive.end(), [](const Block& a, const Block& b) { return a.begin < b.begin; });
    std::vector<Block> freed;
    for (const size_t other : placed.most_recent(std::move(not_alive))) freed.push_back(block_of(other));
    const size_t recent = find_recent(freed, bytes, plan.peak_bytes,
                                      [&](size_t begin, size_t end) { return is_free(alive, begin, end); });
    plan.offsets[t] = recent != kNowhere ? recent : find_gap_or_top(alive, bytes, plan.peak_bytes);
    plan.peak_bytes = std::max(plan.peak_bytes, plan.offsets[t] + bytes);
    placed.add(t);
  }
  if (tensors.size() <= kMaxForQuadratic && plan.peak_bytes != plan.lower_bound_bytes) {
    MemoryPlan by_size = plan_memory(sizes, alive_together);
    take_if_smaller(plan, std::move(by_size.offsets), by_size.peak_bytes);
  }
  return plan;
}

MemoryPlan plan_memory(std::span<const size_t> bytes, const AliveTogether& alive_together) {
  MemoryPlan plan;
  plan.offsets.assign(bytes.size(), 0);
  plan.sum_bytes = sum_aligned(bytes);
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<size_t> placed;
  for (const size_t t : order) {
    const size_t size = aligned_size(bytes[t]);
    if (size == 0) continue;
    plan.lower_bound_bytes = std::max(plan.lower_bound_bytes, size);
    std::vector<Block> blocks;
    for (const size_t other : placed) {
      if (!alive_together(t, other)) continue;
      blocks.push_back({plan.offsets[other], plan.offsets[other] + aligned_size(bytes[other]), 0});
    }
    std::sort(blocks.begin(), blocks.end(), [](const Block& a, const Block& b) { return a.begin < b.begin; });
    plan.offsets[t] = find_gap_or_top(blocks, size, plan.peak_bytes);
    plan.peak_bytes = std::max(plan.peak_bytes, plan.offsets[t] + size);
    placed.push_back(t);
  }
  return plan;
}

}  // namespace autograph

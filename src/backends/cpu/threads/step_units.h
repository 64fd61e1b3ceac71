// Which units of a step a thread works on, where threads help each other.
#pragma once

#include <atomic>
#include <cstdint>

namespace autograph {

/// How many units of a thread's share of a step are taken, on a line of the cache of its own. Of every other step
/// apart: a thread makes that of the next step 0 while nobody looks at it, so that those of a thread which is late to
/// begin a step can be taken.
struct alignas(64) TakenUnits {
  std::atomic<int64_t> counts[2] = {0, 0};
};

/// What one thread does of a step: the units of its own share, every other step from back to front, so that what was
/// last in its cache comes first. Then, with `taken`, those that others have not begun.
class StepUnits {
 public:
  StepUnits(int64_t step, int64_t count, int team, int thread, TakenUnits* taken)
      : is_back_(step % 2 == 1), count_(count), team_(team), thread_(thread), taken_(taken) {
    look_at(thread);
    if (taken_) taken_[thread_].counts[is_back_ ? 0 : 1].store(0, std::memory_order_relaxed);
  }

  /// A unit that nobody else gets; -1 when there is none left.
  int64_t next() {
    while (true) {
      const int64_t i =
          taken_ ? taken_[owner_].counts[is_back_ ? 1 : 0].fetch_add(1, std::memory_order_relaxed) : own_++;
      if (i < end_ - begin_) return is_back_ ? end_ - 1 - i : begin_ + i;
      if (!taken_ || visited_ + 1 >= team_) return -1;
      ++visited_;
      look_at((thread_ + visited_) % team_);
    }
  }

 private:
  void look_at(int owner) {
    owner_ = owner;
    begin_ = count_ * owner / team_;
    end_ = count_ * (owner + 1) / team_;
  }

  const bool is_back_;
  const int64_t count_;
  const int team_, thread_;
  TakenUnits* const taken_;
  int64_t own_ = 0;
  int visited_ = 0;
  // The share that is looked at.
  int owner_ = 0;
  int64_t begin_ = 0, end_ = 0;
};

}  // namespace autograph

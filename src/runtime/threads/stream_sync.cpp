#include "runtime/threads/stream_sync.h"

#include "runtime/threads/spin.h"
#include "runtime/threads/store_and_wake.h"

namespace autograph {

StreamSync::StreamSync(const Plan& plan)
    : plan_(plan), over_in_(std::make_unique<std::atomic<uint32_t>[]>(plan.steps.size())) {}

void StreamSync::begin_run() {
  ++run_;
  has_failed_ = false;
  error_ = nullptr;
}

bool StreamSync::wait_for_others(const Step& step, bool may_spin) const {
  for (const uint32_t number : step.waits) {
    if (may_spin) spin_until([&] { return is_over(number); });
    for (uint32_t seen = over_in_[number].load(std::memory_order_acquire); seen != run_;
         seen = over_in_[number].load(std::memory_order_acquire)) {
      over_in_[number].wait(seen, std::memory_order_acquire);
    }
  }
  return !has_failed_.load(std::memory_order_acquire);
}

void StreamSync::finish(uint32_t number) {
  if (!plan_.steps[number].is_awaited) return;
  store_and_wake(over_in_[number], run_);
}

void StreamSync::fail(uint32_t number) {
  const std::lock_guard lock(mutex_);
  has_failed_.store(true, std::memory_order_release);
  if (error_ && failed_step_ < number) return;
  error_ = std::current_exception();
  failed_step_ = number;
}

}  // namespace autograph

#include "runtime/threads/core_gate.h"

#include <algorithm>

#include "autograph/cpu_count.h"

namespace autograph {

CoreGate::Pass::Pass(CoreGate& gate, int threads) : gate_(gate), threads_(std::clamp(threads, 1, gate.cores_)) {
  std::unique_lock lock(gate_.mutex_);
  const uint64_t ticket = gate_.next_ticket_++;
  gate_.changed_.wait(lock, [&] { return gate_.serving_ == ticket && gate_.free_ >= threads_; });
  gate_.free_ -= threads_;
  ++gate_.serving_;
  lock.unlock();
  // The next in line may find enough processors, too.
  gate_.changed_.notify_all();
}

CoreGate::Pass::~Pass() {
  {
    const std::lock_guard lock(gate_.mutex_);
    gate_.free_ += threads_;
  }
  gate_.changed_.notify_all();
}

CoreGate& CoreGate::of_process() {
  static CoreGate gate(usable_cpu_count());
  return gate;
}

}  // namespace autograph

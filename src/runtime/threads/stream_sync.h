// What the streams of one run tell each other: which steps are over, and that one of them has failed.
//
// A step is over in a run when its entry holds the number of that run, so that nothing is reset between runs. A stream
// that stops, for whatever reason, says that its remaining steps are over: nobody waits for what does not come.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>

#include "schedule/plan.h"

namespace autograph {

class StreamSync {
 public:
  explicit StreamSync(const Plan& plan);

  /// Before the streams of a run begin; no stream is at work.
  void begin_run();
  /// Waits until all that `step` waits for is over; spins a little first where `may_spin`. False when a stream failed.
  bool wait_for_others(const Step& step, bool may_spin) const;
  /// Says that step `number` is over.
  void finish(uint32_t number);
  /// Keeps the current exception, which step `number` threw: that of the smallest number stays.
  void fail(uint32_t number);

  /// The exception that fail() kept in this run; null when there is none. For when all streams have ended.
  const std::exception_ptr& error() const { return error_; }
  uint32_t failed_step() const { return failed_step_; }

 private:
  bool is_over(uint32_t number) const { return over_in_[number].load(std::memory_order_acquire) == run_; }

  const Plan& plan_;
  std::unique_ptr<std::atomic<uint32_t>[]> over_in_;  // by step: the run in which it was over last
  uint32_t run_ = 0;
  std::atomic<bool> has_failed_{false};
  std::mutex mutex_;  // guards error_ and failed_step_ while streams are at work
  std::exception_ptr error_;
  uint32_t failed_step_ = 0;
};

}  // namespace autograph

// Whether other programs are at work on the processors of this process, and how many they leave to a run.
//
// A team of threads waits for its last thread at the end of every step. Where another program shares a processor with
// one of them, or the system has put two of them on one, a step takes a time slice of the scheduler (4 ms) instead of
// microseconds. A run then goes on with as many threads as there are processors free.
#pragma once

#include <atomic>
#include <limits>
#include <mutex>
#include <optional>

#include "runtime/threads/core_times.h"

namespace autograph {

/// Any number of runs may use it at once.
class CoreWatch {
 public:
  static constexpr int kNoLimit = std::numeric_limits<int>::max();

  explicit CoreWatch(const CoreSource& source) : source_(source) {}

  /// That of this process.
  static CoreWatch& of_process();

  /// How many threads of a run find a processor now, of the numbers in device/thread_steps.h; kNoLimit while nobody
  /// else is at work. Called between steps: it looks at a clock, and at the machine every kLookUs.
  int limit();

  /// How often it asks for preemptions, in microseconds: 0.5 us in 20 ms.
  static constexpr int64_t kLookUs = 20'000;
  /// The shortest time over which it compares busy times, which the system counts in steps of 10 ms.
  static constexpr double kWindowUs = 100'000;

 private:
  void look(int64_t now_us);
  void suspect(int64_t preempted);
  void follow();
  void set_limit(double busy);
  std::optional<double> strangers(const CoreTimes& now) const;

  const CoreSource& source_;
  std::atomic<int> limit_{kNoLimit};
  std::atomic<int64_t> next_look_us_{0};
  std::mutex mutex_;  // guards all below
  int64_t preemptions_ = 0;
  int64_t preempted_in_window_ = 0;
  std::optional<CoreTimes> since_;  // where the window began; while nobody else is at work: only on suspicion
  int quiet_windows_ = 0;
};

}  // namespace autograph

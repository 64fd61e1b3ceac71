// Timing runs by the clock of a device, from outside of what runs them.
#pragma once

namespace autograph {

/// Launches that this thread begins while it lives are timed by Launchable::time_us(); those of nested graphs are part
/// of the one around them.
class LaunchClock {
 public:
  LaunchClock();
  ~LaunchClock();
  LaunchClock(const LaunchClock&) = delete;
  LaunchClock& operator=(const LaunchClock&) = delete;
  /// Null: nobody asks.
  static LaunchClock* of_this_thread();

  void add(double us) { us_ += us; }
  /// Of all launches so far.
  double us() const { return us_; }

 private:
  double us_ = 0;
  LaunchClock* outer_;
};

}  // namespace autograph

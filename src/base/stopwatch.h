// The time since something began.
#pragma once

#include <chrono>

namespace autograph {

/// Runs from when it is made.
class Stopwatch {
 public:
  double us() const { return elapsed<std::micro>(); }
  double ms() const { return elapsed<std::milli>(); }

 private:
  using Clock = std::chrono::steady_clock;
  template <class Unit>
  double elapsed() const {
    return std::chrono::duration<double, Unit>(Clock::now() - start_).count();
  }
  Clock::time_point start_ = Clock::now();
};

}  // namespace autograph

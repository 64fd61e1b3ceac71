// Processors of which a test says how busy they are.
#pragma once

#include <mutex>
#include <optional>

#include "runtime/threads/core_times.h"

namespace autograph {

class FakeCores : public CoreSource {
 public:
  /// Of a stretch of time: processors kept busy by this process and by others, preemptions of this process.
  struct State {
    double own = 0;
    double others = 0;
    int64_t preemptions = 0;
  };

  explicit FakeCores(int cpus) : cpus_(cpus) {}

  /// Lets time pass in a state.
  void pass(int64_t us, const State& state) {
    const std::lock_guard lock(mutex_);
    pass_locked(us, state);
  }
  /// Lets time pass whenever it is asked for the time.
  void advance_when_asked(int64_t us, const State& state) {
    step_us_ = us;
    step_ = state;
  }
  /// From now on times() gives nothing.
  void hide() { is_hidden_ = true; }
  /// How often times() was called.
  int looks() const { return looks_; }

  int64_t now_us() const override {
    const std::lock_guard lock(mutex_);
    if (step_us_ > 0) pass_locked(step_us_, step_);
    return static_cast<int64_t>(times_.wall_us);
  }
  int64_t preemptions() const override {
    const std::lock_guard lock(mutex_);
    return preemptions_;
  }
  std::optional<CoreTimes> times() const override {
    const std::lock_guard lock(mutex_);
    ++looks_;
    if (is_hidden_) return std::nullopt;
    return times_;
  }
  int cpus() const override { return cpus_; }

 private:
  void pass_locked(int64_t us, const State& state) const {
    const auto length = static_cast<double>(us);
    times_.wall_us += length;
    times_.own_us += state.own * length;
    times_.busy_us += (state.own + state.others) * length;
    preemptions_ += state.preemptions;
  }

  const int cpus_;
  int64_t step_us_ = 0;
  State step_;
  bool is_hidden_ = false;
  mutable std::mutex mutex_;  // guards all below
  mutable CoreTimes times_;
  mutable int64_t preemptions_ = 0;
  mutable int looks_ = 0;
};

}  // namespace autograph

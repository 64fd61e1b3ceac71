#include "runtime/threads/core_watch.h"

#include <algorithm>
#include <cmath>

#include "device/thread_steps.h"

namespace autograph {
namespace {

// Processors kept busy by others, from which on it pays to leave them alone: a program that never sleeps gets half of
// one that it shares. Below the second one they are gone.
constexpr double kBusy = 0.35;
constexpr double kGone = 0.2;
// In a window: two threads that share a processor change places 25 times in 100 ms, or 10 where the clock is slow. What
// the system itself does now and then interrupts more rarely.
constexpr int64_t kFewestPreemptions = 3;
// A suspicion this old says nothing.
constexpr double kOldUs = 4 * CoreWatch::kWindowUs;
// Windows without others before all threads are used again: programs pause.
constexpr int kQuietWindows = 2;

}  // namespace

CoreWatch& CoreWatch::of_process() {
  static const SystemCores kCores;
  static CoreWatch watch(kCores);
  return watch;
}

int CoreWatch::limit() {
  const int64_t now_us = source_.now_us();
  if (now_us >= next_look_us_.load(std::memory_order_relaxed)) look(now_us);
  return limit_.load(std::memory_order_relaxed);
}

void CoreWatch::look(int64_t now_us) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || now_us < next_look_us_.load(std::memory_order_relaxed)) return;  // another run does it
  if (limit_.load(std::memory_order_relaxed) != kNoLimit) {
    next_look_us_.store(now_us + static_cast<int64_t>(kWindowUs), std::memory_order_relaxed);
    follow();
    return;
  }
  next_look_us_.store(now_us + kLookUs, std::memory_order_relaxed);
  const int64_t preemptions = source_.preemptions();
  const int64_t preempted = preemptions - preemptions_;
  preemptions_ = preemptions;
  if (preempted > 0) suspect(preempted);
}

// Processors that others have kept busy since the window began.
std::optional<double> CoreWatch::strangers(const CoreTimes& now) const {
  const double wall_us = now.wall_us - since_->wall_us;
  if (wall_us < kWindowUs) return std::nullopt;
  return std::max(0.0, (now.busy_us - since_->busy_us) - (now.own_us - since_->own_us)) / wall_us;
}

// Somebody took a processor from this process: is anybody at work there all the time?
void CoreWatch::suspect(int64_t preempted) {
  const std::optional<CoreTimes> now = source_.times();
  if (!now) return;
  const bool is_old = since_ && now->wall_us - since_->wall_us > kOldUs;
  if (!since_ || is_old) {
    since_ = now;
    preempted_in_window_ = 0;
    return;
  }
  preempted_in_window_ += preempted;
  const std::optional<double> busy = strangers(*now);
  if (!busy) return;
  if (*busy >= kBusy && preempted_in_window_ >= kFewestPreemptions) set_limit(*busy);
  since_ = now;
  preempted_in_window_ = 0;
}

// Others were at work: are they still?
void CoreWatch::follow() {
  const std::optional<CoreTimes> now = source_.times();
  if (now && !since_) since_ = now;
  const std::optional<double> busy = now ? strangers(*now) : 0;
  if (!busy) return;
  since_ = now;
  quiet_windows_ = *busy < kGone ? quiet_windows_ + 1 : 0;
  if (quiet_windows_ == 0) set_limit(*busy);
  if (quiet_windows_ < kQuietWindows) return;
  limit_.store(kNoLimit, std::memory_order_relaxed);
  preemptions_ = source_.preemptions();
  since_.reset();
}

// At least one thread, and at least one less than processors: less than a whole one is measured where it is shared.
void CoreWatch::set_limit(double busy) {
  const int taken = std::max(1, static_cast<int>(std::lround(busy)));
  limit_.store(thread_step_at_most(source_.cpus() - taken), std::memory_order_relaxed);
  quiet_windows_ = 0;
}

}  // namespace autograph

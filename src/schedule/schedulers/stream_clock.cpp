#include "schedule/schedulers/stream_clock.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace autograph {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class StreamClock {
 public:
  StreamClock(const std::vector<ClockKernel>& kernels, double sync_us) : kernels_(kernels), sync_us_(sync_us) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (kernels[k].stream >= queues_.size()) queues_.resize(kernels[k].stream + 1);
      queues_[kernels[k].stream].push_back(k);
    }
    streams_.resize(queues_.size());
    report_.start_us.assign(kernels.size(), 0);
    report_.end_us.assign(kernels.size(), kNever);
  }

  ClockReport run() {
    while (num_done_ < kernels_.size()) {
      begin_kernels();
      const double speed = full_speed_part();
      const double next_us = next_event_us(speed);
      AG_CHECK(next_us < kNever, "stream clock: {} of {} kernels wait for what never comes",
               kernels_.size() - num_done_, kernels_.size());
      advance(next_us, speed);
    }
    return std::move(report_);
  }

 private:
  // The kernel at the head of a stream: waiting (its inputs have not ended), starting, or working.
  struct Head {
    size_t place = 0;        // in the queue
    bool has_begun = false;  // start_us of the report is known
    double work_at_us = 0;   // when the work begins, once it has begun
    double left_us = 0;      // work that is left at full speed
    double free_us = 0;      // when the kernel before it ended
  };

  bool is_over(size_t s) const { return streams_[s].place == queues_[s].size(); }
  const ClockKernel& kernel(size_t s) const { return kernels_[queues_[s][streams_[s].place]]; }
  bool is_working(size_t s) const { return !is_over(s) && streams_[s].has_begun && streams_[s].work_at_us <= now_us_; }

  // Fixes when heads begin whose inputs have all ended; that may be later than now.
  void begin_kernels() {
    for (size_t s = 0; s < streams_.size(); ++s) {
      Head& head = streams_[s];
      if (is_over(s) || head.has_begun) continue;
      double ready_us = std::max(head.free_us, kernel(s).launched_us);
      for (const size_t source : kernel(s).waits) ready_us = std::max(ready_us, report_.end_us[source] + sync_us_);
      if (ready_us == kNever) continue;
      head.has_begun = true;
      head.work_at_us = ready_us + kernel(s).start_us;
      head.left_us = kernel(s).work_us;
      report_.start_us[queues_[s][head.place]] = ready_us;
    }
  }

  double full_speed_part() {
    sms_ = bytes_ = 0;
    size_t running = 0;
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (!is_working(s)) continue;
      ++running;
      sms_ += kernel(s).sms_part;
      bytes_ += kernel(s).bytes_part;
    }
    report_.max_running = std::max(report_.max_running, running);
    return 1 / std::max({1.0, sms_, bytes_});
  }

  double next_event_us(double speed) const {
    double next_us = kNever;
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (is_over(s) || !streams_[s].has_begun) continue;
      next_us = std::min(next_us, is_working(s) ? now_us_ + streams_[s].left_us / speed : streams_[s].work_at_us);
    }
    return next_us;
  }

  void advance(double next_us, double speed) {
    report_.sms_us += (next_us - now_us_) * sms_ * speed;
    report_.bytes_us += (next_us - now_us_) * bytes_ * speed;
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (!is_working(s)) continue;
      Head& head = streams_[s];
      // Compared as next_event_us() computes it: a kernel that sets the next event ends there exactly.
      if (now_us_ + head.left_us / speed <= next_us) {
        report_.end_us[queues_[s][head.place]] = next_us;
        head = {head.place + 1, false, 0, 0, next_us};
        ++num_done_;
      } else {
        head.left_us = std::max(0.0, head.left_us - (next_us - now_us_) * speed);
      }
    }
    now_us_ = next_us;
  }

  const std::vector<ClockKernel>& kernels_;
  double sync_us_;
  std::vector<std::vector<size_t>> queues_;
  std::vector<Head> streams_;
  ClockReport report_;
  double now_us_ = 0;
  double sms_ = 0;    // asked for now
  double bytes_ = 0;  // likewise
  size_t num_done_ = 0;
};

}  // namespace

ClockReport run_clock(const std::vector<ClockKernel>& kernels, double sync_us) {
  return StreamClock(kernels, sync_us).run();
}

}  // namespace autograph

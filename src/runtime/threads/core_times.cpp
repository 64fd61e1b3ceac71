#include "runtime/threads/core_times.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>

namespace autograph {
namespace {

int64_t clock_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000 + time.tv_nsec / 1000;
}

// The number at the front of `text`, which it takes off with the blanks before it; -1 when there is none.
int64_t take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

// Of a line "cpu0 user nice system idle iowait irq softirq steal ...", behind "cpu": ticks idle, waiting and stolen,
// when the processor is in the mask. Kernels before 2.6.11 do not tell the last.
std::optional<int64_t> idle_ticks(std::string_view line, const cpu_set_t& mask) {
  const int64_t cpu = take_number(line);
  if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(cpu), &mask)) return std::nullopt;
  constexpr int kIdle = 3, kWait = 4, kSteal = 7;
  int64_t ticks = 0;
  for (int field = 0; field <= kSteal; ++field) {
    const int64_t number = take_number(line);
    if (number < 0) break;
    if (field == kIdle || field == kWait || field == kSteal) ticks += number;
  }
  return ticks;
}

}  // namespace

std::optional<double> parse_idle_us(std::string_view stat, const cpu_set_t& mask, int64_t ticks_per_second) {
  int64_t ticks = 0;
  bool is_known = false;
  while (stat.starts_with("cpu")) {
    const size_t end = std::min(stat.find('\n'), stat.size());
    const std::string_view line = stat.substr(3, end - 3);
    // The first line is the sum of all.
    const std::optional<int64_t> idle = line.starts_with(' ') ? std::nullopt : idle_ticks(line, mask);
    if (idle) ticks += *idle, is_known = true;
    stat.remove_prefix(std::min(end + 1, stat.size()));
  }
  if (!is_known || ticks_per_second <= 0) return std::nullopt;
  return static_cast<double>(ticks) * 1e6 / static_cast<double>(ticks_per_second);
}

SystemCores::SystemCores() {
  CPU_ZERO(&mask_);
  sched_getaffinity(0, sizeof mask_, &mask_);
  cpus_ = CPU_COUNT(&mask_);
  constexpr size_t kBytesPerLine = 160;  // ten numbers
  text_.resize(kBytesPerLine * static_cast<size_t>(sysconf(_SC_NPROCESSORS_CONF) + 1));
}

int64_t SystemCores::now_us() const { return clock_us(CLOCK_MONOTONIC_COARSE); }

int64_t SystemCores::preemptions() const {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

std::optional<CoreTimes> SystemCores::times() const {
  const int file = open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t size = read(file, text_.data(), text_.size());
  close(file);
  if (size <= 0) return std::nullopt;
  const std::string_view text(text_.data(), static_cast<size_t>(size));
  const std::optional<double> idle_us =
      parse_idle_us(text.substr(0, text.rfind('\n') + 1), mask_, sysconf(_SC_CLK_TCK));
  if (!idle_us) return std::nullopt;
  CoreTimes times;
  times.wall_us = static_cast<double>(clock_us(CLOCK_MONOTONIC));
  times.own_us = static_cast<double>(clock_us(CLOCK_PROCESS_CPUTIME_ID));
  times.busy_us = times.wall_us * cpus_ - *idle_us;
  return times;
}

}  // namespace autograph

// How busy the processors of this process are, and how much of that it is itself.
#pragma once

#include <sched.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace autograph {

/// Sums since some moment, in microseconds.
struct CoreTimes {
  double wall_us = 0;
  double busy_us = 0;  ///< Of all processors together that the process may use, by whomever.
  double own_us = 0;   ///< Of this process.
};

/// Where CoreWatch looks; tests have others.
class CoreSource {
 public:
  virtual ~CoreSource() = default;
  /// A clock that costs next to nothing to read, and may advance in steps of some milliseconds.
  virtual int64_t now_us() const = 0;
  /// How often a thread of this process had to leave its processor to another before it was done.
  virtual int64_t preemptions() const = 0;
  /// Nothing where the system does not tell. May take as long as a small step.
  virtual std::optional<CoreTimes> times() const = 0;
  /// Processors that the process may use.
  virtual int cpus() const = 0;
};

/// Microseconds that the processors of `mask` had nothing to do for or were away by order of a hypervisor, from the
/// text of /proc/stat; nothing when it names none of them. `ticks_per_second`: its unit.
std::optional<double> parse_idle_us(std::string_view stat, const cpu_set_t& mask, int64_t ticks_per_second);

/// This machine. times() is for one thread at a time.
class SystemCores : public CoreSource {
 public:
  SystemCores();
  int64_t now_us() const override;
  int64_t preemptions() const override;
  std::optional<CoreTimes> times() const override;
  int cpus() const override { return cpus_; }

 private:
  cpu_set_t mask_;  // when this was made: threads may be bound later
  int cpus_;
  mutable std::vector<char> text_;  // runs must not allocate
};

}  // namespace autograph

// A clock for streams that share one device: kernels that wait for each other, and slow each other down where they ask
// for more than there is.
#pragma once

#include <cstddef>
#include <vector>

#include "optimize/cost/kernel_load.h"

namespace autograph {

/// A kernel as the clock sees it.
struct ClockKernel {
  double start_us = 0;             ///< What it takes to start, at any load.
  double work_us = 0;              ///< What the work takes at full speed.
  double sms_part = 0;             ///< Part of the processors.
  double bytes_part = 0;           ///< Part of the bandwidth.
  double launched_us = 0;          ///< It does not start earlier.
  size_t stream = 0;               ///< It starts after the kernels of this stream that come before it.
  std::vector<size_t> waits = {};  ///< Kernels of other streams, which come before it; each wait adds `sync_us`.
};

/// A kernel of this load.
inline ClockKernel clock_kernel(const KernelLoad& load, size_t stream) {
  return {.start_us = load.start_us,
          .work_us = load.work_us,
          .sms_part = load.processors,
          .bytes_part = load.bandwidth,
          .stream = stream};
}

/// What the clock tells.
struct ClockReport {
  std::vector<double> start_us;  ///< Of each kernel: when it begins to start.
  std::vector<double> end_us;    ///< Of each kernel.
  double sms_us = 0;             ///< Integral of the used part of the processors.
  double bytes_us = 0;           ///< Integral of the used part of the bandwidth.
  size_t max_running = 0;        ///< Kernels that work at the same time, at most.
};

/// Runs kernels, which are listed such that each comes after those it waits for. O(kernels * (streams + waits)).
ClockReport run_clock(const std::vector<ClockKernel>& kernels, double sync_us);

}  // namespace autograph

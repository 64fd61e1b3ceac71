// A profile of a run in figures: how fast each step was beside what the machine can do, sums by op, and the time in
// which no kernel ran.
#pragma once

#include "autograph/machine_peak.h"
#include "autograph/run_report.h"
#include "report/json.h"

namespace autograph {

/// Speed of one step. Both shares are of the peak on the threads of the run; the greater one is what limits the step.
struct StepSpeed {
  double gflops = 0;         ///< 1e9 operations per second.
  double gb_per_s = 0;       ///< 1e9 bytes per second.
  double compute_share = 0;  ///< Of the multiply-add peak.
  double memory_share = 0;   ///< Of the bandwidth of the level that holds the step's bytes.
  std::string level;         ///< That level; "" when the step's bytes are not known.
};

/// Of `step` on a machine with this peak.
StepSpeed speed_of(const StepProfile& step, const MachinePeak& peak, int threads);

/// Where the time of a run went, in microseconds.
struct RunTimes {
  double kernels_us = 0;  ///< Sum over the steps.
  double busy_us = 0;     ///< In which at least one step ran: less than the sum where streams ran side by side.
  double run_us = 0;      ///< From the start of the first step to the end of the last.
  /// The part of the run in which no kernel ran.
  double between_share() const { return run_us > 0 ? (run_us - busy_us) / run_us : 0; }
};

/// Of the steps of one run, in any order.
RunTimes run_times(const std::vector<StepProfile>& steps);

/// All that is known about a profiled run.
struct ProfileReport {
  std::vector<StepProfile> steps;     ///< Slowest first.
  std::vector<KernelChoice> choices;  ///< As StepProfile::choice counts them.
  MachinePeak peak;
  int threads = 1;
};

/// {ops:[..], by_op:[..], total_ms, run_ms, between_share, by_reference, threads, peak}: members of a document.
Json::Object profile_json(const ProfileReport& report);

/// Tables for people: the `top` slowest steps, sums by op and kernel, refused kernels, the time between kernels.
std::string profile_text(const ProfileReport& report, size_t top, bool escapes);

}  // namespace autograph

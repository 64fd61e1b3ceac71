// Compiling and timing, as the verbs that run models need it.
#pragma once

#include <vector>

#include "autograph/compile.h"
#include "cli/model_source.h"
#include "cli/run_options.h"
#include "cli/session.h"

namespace autograph::cli {

/// Milliseconds since it was made.
class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// The flags as options of the library. Throws UnsupportedError for a strategy that this build does not have yet.
CompileOptions compile_options(const RunOptions& options);

/// Compiles, and logs time, kernels and plan as --log asks.
Executable compile_logged(Session& session, Graph graph, CompileOptions options);

/// Logs kernels and plan: known only after the first run when extents are symbolic.
void log_plan(const Session& session, const Executable& executable);

/// Latencies of one run, in milliseconds.
struct Latency {
  std::vector<double> sorted_ms;
  /// The value that a fraction `q` of all runs do not exceed.
  double quantile(double q) const;
  double mean() const;
};

/// Runs `executable` for `seconds` (at least three times) after `warmup` runs that do not count.
Latency measure(Session& session, const Executable& executable, const std::vector<Datum>& inputs, int64_t warmup,
                double seconds);

/// {min, median, p90, p99, mean}
Json latency_json(const Latency& latency);

}  // namespace autograph::cli

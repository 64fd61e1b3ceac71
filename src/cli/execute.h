// Compiling and timing, as the verbs that run models need it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "autograph/compare_values.h"
#include "autograph/compile.h"
#include "autograph/search.h"
#include "base/stopwatch.h"
#include "base/time_in_turns.h"
#include "cli/options/run_options.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"

namespace autograph::cli {

/// The flags as options of the library. Throws UnsupportedError for a strategy that this build does not have yet.
CompileOptions compile_options(const RunOptions& options);

/// The flags, and the precision of a saved plan unless a flag says otherwise.
RunOptions with_plan(const Session& session, const LoadedModel& loaded, RunOptions options);

/// A model ready to run, and how it came about.
struct CompiledModel {
  Executable executable;
  std::string strategy;
  std::string device;
  int streams = 1;                                    ///< At most so many at the same time.
  std::optional<SearchReport> report = std::nullopt;  ///< Of the search, now or when the plan was made.
};

/// How compile_model() compiles, besides RunOptions.
struct CompileHow {
  bool profile = false;
  Revalidation revalidation = Revalidation::all;  ///< For a plan that was made elsewhere.
};

/// Compiles a model with the strategy of `options`, which may search; or a saved plan, as it was made, with a warning
/// and a check when it was made elsewhere. Uses up the graph of `loaded`, so that weights need not be there twice.
/// Throws Error with ExitCode::mismatch when the plan gives other numbers here.
CompiledModel compile_model(Session& session, LoadedModel& loaded, const RunOptions& options,
                            const CompileHow& how = {});

/// Warns where the cache cannot keep what is about to be measured, so that the next run measures again.
void warn_where_nothing_is_kept(const Session& session, const RunOptions& options);

/// Of --rtol and --atol. Throws UserError for less than 0, but for an atol that nobody gave.
void check_tolerance(const Tolerance& given);

/// How far results of `graph` may be from the reference, as far as `given` does not say: wider where it computes in
/// bf16 or is quantized.
Tolerance tolerance_for(const Graph& graph, const RunOptions& options, Tolerance given = {});

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

/// Runs `executable` for `seconds` (at least three times) after `warmup` runs that do not count. One latency, that of
/// the clock, on a simulated device.
Latency measure(Session& session, const Executable& executable, const std::vector<Datum>& inputs, int64_t warmup,
                double seconds);

/// Something to measure, and on what.
struct Contestant {
  const Executable* executable = nullptr;
  const std::vector<Datum>* inputs = nullptr;
};

/// Rounds that executables run before they are made anew.
inline constexpr int kRoundsOfOneMaking = 4;

/// Runs all in turns, A B C A B C, for `seconds` each in all: what disturbs the machine hits all alike. Milliseconds of
/// the fastest run of each in each round. `renew`, where given, is called on the way to make the executables anew:
/// where the memory of one happens to lie makes it some percent faster or slower as long as it lives.
RoundTimes rounds_in_turns(Session& session, const std::vector<Contestant>& contestants, double seconds,
                           const std::function<void()>& renew = nullptr);
/// The same, and of all rounds of each what medians() has.
std::vector<double> measure_in_turns(Session& session, const std::vector<Contestant>& contestants, double seconds);

/// {min, median, p90, p99, mean}
Json latency_json(const Latency& latency);

}  // namespace autograph::cli

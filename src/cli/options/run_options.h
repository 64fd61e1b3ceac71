// Flags shared by the verbs that compile a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "autograph/search.h"
#include "cli/options/command.h"
#include "cli/options/nan_check_options.h"

namespace autograph::cli {

/// How to compile and run.
struct RunOptions {
  std::string device = "cpu";
  std::string strategy;  ///< "": the verb's default.
  double budget_seconds = 60;
  int64_t threads = 0;
  bool pin = false;
  bool fixed_threads = false;
  int64_t seed = 0;
  int64_t memory_budget_mib = 0;
  NanCheckFlags check_nan;
  bool no_optimize = false;
  bool keeps_weights = false;  ///< No option: set by verbs that look at what nodes read.
  std::vector<std::string> disabled_passes;
  bool tune = false;
  bool attest = false;
  std::string cache_dir;
  std::string precision = "f32";
  bool exact = false;
};

/// --device, --strategy, --budget, --threads, --pin, --fixed-threads, --seed, --memory-budget, --check-nan,
/// --check-every-node, --no-optimize, --disable-pass, --tune, --attest, --cache-dir, --precision, --exact.
std::vector<Option> run_option_table(RunOptions& options);

/// Of --threads. Throws UserError for less than 0 and for more than any machine has.
int checked_threads(int64_t threads);

/// Of --memory-budget. Throws UserError for less than 0 and for more than any machine has.
size_t bytes_of_budget(int64_t mebibytes);

/// The strategy that was asked for, sequential when none was. Throws UnsupportedError when this build has none of that
/// name.
Strategy strategy_of(const RunOptions& options);

/// All strategies by name, the plainest first.
std::vector<std::string> strategy_names();

}  // namespace autograph::cli

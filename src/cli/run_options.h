// Flags shared by the verbs that compile a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/command.h"

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
  bool check_nan = false;
  bool no_optimize = false;
  std::vector<std::string> disabled_passes;
  bool tune = false;
  bool attest = false;
  std::string cache_dir;
  std::string precision = "f32";
  bool exact = false;
};

/// --device, --strategy, --budget, --threads, --pin, --fixed-threads, --seed, --memory-budget, --check-nan,
/// --no-optimize, --disable-pass, --tune, --attest, --cache-dir, --precision, --exact.
std::vector<Option> run_option_table(RunOptions& options);

}  // namespace autograph::cli

#include "cli/options/run_options.h"

#include <algorithm>

#include "base/check.h"
#include "base/join.h"

namespace autograph::cli {

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy strategy : available_strategies()) names.emplace_back(to_string(strategy));
  return names;
}

Strategy strategy_of(const RunOptions& options) {
  if (options.strategy.empty()) return Strategy::sequential;
  const std::vector<std::string> names = strategy_names();
  if (std::find(names.begin(), names.end(), options.strategy) == names.end()) {
    throw UnsupportedError(
        fmt::format("[cli] strategy: this build has {}, got '{}'", join(names, ", "), options.strategy));
  }
  return strategy_named(options.strategy);
}

int checked_threads(int64_t threads) {
  AG_CHECK_USER(threads >= 0 && threads <= 4096, UserError, "[cli] threads: expected 0..4096, got {}", threads);
  return static_cast<int>(threads);
}

size_t bytes_of_budget(int64_t mebibytes) {
  constexpr int64_t kMost = int64_t{1} << 40;
  AG_CHECK_USER(mebibytes >= 0 && mebibytes <= kMost, UserError, "[cli] memory-budget: expected 0..{}, got {}", kMost,
                mebibytes);
  return static_cast<size_t>(mebibytes) << 20;
}

std::vector<Option> run_option_table(RunOptions& options) {
  return {
      {.names = "--device",
       .value_name = "NAME",
       .doc = "Where to run: cpu, cuda, cuda:1, opencl, sim:NAME or reference.",
       .target = &options.device,
       .kind = ValueKind::device,
       .env = "AUTOGRAPH_DEVICE"},
      {.names = "--strategy",
       .value_name = "NAME",
       .doc = "How to find a graph and a schedule; sequential when not given, which does not search.",
       .target = &options.strategy,
       .kind = ValueKind::strategy},
      {.names = "--budget",
       .value_name = "SECONDS",
       .doc = "How long a strategy may search; 60 when not given.",
       .target = &options.budget_seconds},
      {.names = "--threads",
       .value_name = "N",
       .doc = "Threads of one run; 0: all that this process may use.",
       .target = &options.threads,
       .env = "AUTOGRAPH_NUM_THREADS"},
      {.names = "--pin",
       .doc = "Bind each thread to a processor of its own, where nothing else runs on the machine.",
       .target = &options.pin,
       .env = "AUTOGRAPH_PIN"},
      {.names = "--fixed-threads",
       .doc = "Use all threads even while other programs keep processors busy.",
       .target = &options.fixed_threads,
       .env = "AUTOGRAPH_FIXED_THREADS"},
      {.names = "--seed",
       .value_name = "N",
       .doc = "Seed of the inputs that are not given.",
       .target = &options.seed,
       .env = "AUTOGRAPH_SEED"},
      {.names = "--memory-budget",
       .value_name = "MIB",
       .doc = "Refuse to run when activations need more (exit 5); on a device states count, too, and those without "
              "room wait on the host. 0: no limit.",
       .target = &options.memory_budget_mib,
       .env = "AUTOGRAPH_MEMORY_BUDGET"},
      check_nan_option(options.check_nan),
      check_every_node_option(options.check_nan),
      {.names = "--no-optimize",
       .doc = "Compile the graph as it is, without the plain passes.",
       .target = &options.no_optimize},
      {.names = "--disable-pass",
       .value_name = "NAME",
       .doc = "Leave out a pass; may be repeated.",
       .target = &options.disabled_passes},
      {.names = "--tune",
       .doc = "Choose kernels and layouts by measuring them, alone and in whole plans, once: the times are kept in the "
              "cache.",
       .target = &options.tune},
      {.names = "--attest",
       .doc =
           "Run each kernel once and compare it with the reference before it is trusted. What was found is kept in the "
           "cache: compiling takes 4 to 20 runs longer the first time, later 1 to 27 % longer.",
       .target = &options.attest,
       .env = "AUTOGRAPH_ATTEST"},
      {.names = "--cache-dir",
       .value_name = "DIR",
       .doc = "Where measured times are kept; $XDG_CACHE_HOME/autograph or ~/.cache/autograph when not given.",
       .target = &options.cache_dir,
       .kind = ValueKind::directory,
       .env = "AUTOGRAPH_CACHE_DIR"},
      {.names = "--precision",
       .value_name = "TYPE",
       .doc = "In what convolutions and matrix products multiply: f32, or bf16 where the CPU has it (else exit 7).",
       .target = &options.precision,
       .kind = ValueKind::choice,
       .choices = {"f32", "bf16"}},
      {.names = "--exact",
       .doc = "Forbid kernels that sum in another order than the op suggests: Winograd's convolutions.",
       .target = &options.exact},
  };
}

}  // namespace autograph::cli

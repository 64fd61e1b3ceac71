#include "cli/run_options.h"

namespace autograph::cli {

std::vector<Option> run_option_table(RunOptions& options) {
  return {
      {.names = "--device",
       .value_name = "NAME",
       .doc = "Where to run: cpu, cuda, cuda:1, sim:NAME or reference.",
       .target = &options.device,
       .kind = ValueKind::device,
       .env = "AUTOGRAPH_DEVICE"},
      {.names = "--strategy",
       .value_name = "NAME",
       .doc = "How to schedule; the default compiles at once, without a search.",
       .target = &options.strategy,
       .kind = ValueKind::strategy},
      {.names = "--threads",
       .value_name = "N",
       .doc = "Threads of one run; 0: all that this process may use.",
       .target = &options.threads,
       .env = "AUTOGRAPH_NUM_THREADS"},
      {.names = "--seed",
       .value_name = "N",
       .doc = "Seed of the inputs that are not given.",
       .target = &options.seed,
       .env = "AUTOGRAPH_SEED"},
      {.names = "--memory-budget",
       .value_name = "MIB",
       .doc = "Refuse to run when activations need more (exit 5); 0: no limit.",
       .target = &options.memory_budget_mib,
       .env = "AUTOGRAPH_MEMORY_BUDGET"},
      {.names = "--check-nan",
       .doc = "Stop at the first node that makes a NaN or infinity out of finite inputs.",
       .target = &options.check_nan,
       .env = "AUTOGRAPH_CHECK_NAN"},
      {.names = "--no-optimize",
       .doc = "Compile the graph as it is, without the plain passes.",
       .target = &options.no_optimize},
      {.names = "--tune",
       .doc = "Choose kernels and layouts by measuring them, once: the times are kept in the cache.",
       .target = &options.tune},
      {.names = "--cache-dir",
       .value_name = "DIR",
       .doc = "Where measured times are kept; $XDG_CACHE_HOME/autograph or ~/.cache/autograph when not given.",
       .target = &options.cache_dir,
       .env = "AUTOGRAPH_CACHE_DIR"},
      {.names = "--exact",
       .doc = "Forbid kernels that sum in another order than the op suggests: Winograd's convolutions.",
       .target = &options.exact},
  };
}

}  // namespace autograph::cli

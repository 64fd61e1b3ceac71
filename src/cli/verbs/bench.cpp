// `autograph bench MODEL`: steady latency of one compiled model.
#include <fmt/core.h>

#include "autograph/error.h"
#include "base/check.h"
#include "cli/execute.h"
#include "cli/machine.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  double seconds = 3;
  int64_t warmup = 3;
};

// Leading extent of the first tensor input: what people call the batch.
int64_t batch_of(const std::vector<Datum>& inputs) {
  for (const Datum& datum : inputs) {
    if (datum.is_tensor() && datum.tensor().rank() > 0) return datum.tensor().dims()[0];
  }
  return 1;
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  AG_CHECK_USER(options.warmup >= 0, UserError, "[cli] warmup: expected 0 or more, got {}", options.warmup);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const std::vector<Datum> inputs = seeded_inputs(loaded.model.graph, loaded.seeds);
  const Stopwatch compiling;
  const Executable executable = compile_logged(session, std::move(loaded.model.graph), compile_options(options.run));
  const double compile_ms = compiling.ms();
  const Stopwatch first;
  executable.run(inputs);
  const double first_run_ms = first.ms();
  log_plan(session, executable);
  const Latency latency = measure(session, executable, inputs, options.warmup, options.seconds);
  const MemoryReport memory = executable.memory();
  const auto iterations = static_cast<int64_t>(latency.sorted_ms.size());
  const int64_t peak = peak_resident_bytes();
  const auto bytes = [](size_t count) { return human_bytes(static_cast<double>(count)); };
  constexpr int kStreams = 1;  // what every strategy of this build uses
  session.print({{"model", loaded.name},
                 {"device", options.run.device},
                 {"strategy", options.run.strategy},
                 {"threads", executable.threads()},
                 {"streams", kStreams},
                 {"batch", batch_of(inputs)},
                 {"iterations", iterations},
                 {"compile_ms", compile_ms},
                 {"first_run_ms", first_run_ms},
                 {"latency_ms", latency_json(latency)},
                 {"peak_bytes", peak},
                 {"weight_bytes", memory.weight_bytes},
                 {"arena_bytes", memory.arena_bytes},
                 {"sum_of_tensors_bytes", memory.sum_of_tensors_bytes},
                 {"lower_bound_bytes", memory.lower_bound_bytes}},
                pairs_to_string(
                    {{"model", loaded.name},
                     {"device", fmt::format("{}, {} threads, {}", options.run.device, executable.threads(),
                                            options.run.strategy)},
                     {"batch", fmt::format("{}", batch_of(inputs))},
                     {"compile", human_ms(compile_ms)},
                     {"first run", human_ms(first_run_ms)},
                     {"median", fmt::format("{} of {} runs", human_ms(latency.quantile(0.5)), iterations)},
                     {"min", human_ms(latency.quantile(0))},
                     {"p90", human_ms(latency.quantile(0.9))},
                     {"p99", human_ms(latency.quantile(0.99))},
                     {"mean", human_ms(latency.mean())},
                     {"weights", bytes(memory.weight_bytes)},
                     {"activations", fmt::format("{} planned, {} without reuse, {} at least", bytes(memory.arena_bytes),
                                                 bytes(memory.sum_of_tensors_bytes), bytes(memory.lower_bound_bytes))},
                     {"peak", human_bytes(static_cast<double>(peak)) + " of the whole process"}}));
  return 0;
}

}  // namespace

Command bench_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "--seconds",
                   .value_name = "T",
                   .doc = "How long to measure, warm-up not included; 3 when not given.",
                   .target = &options->seconds});
  table.push_back({.names = "--warmup",
                   .value_name = "N",
                   .doc = "Runs before measuring; 3 when not given.",
                   .target = &options->warmup});
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "bench",
      .doc = "steady latency of a model",
      .details = "Inputs are drawn from the seed. The quantiles are of single runs, one after the other.",
      .examples = {{"autograph bench zoo:resnet50 --seconds 5", "Five seconds on the CPU."},
                   {"autograph bench model.onnx --batch 8 --threads 2 --json", "Batch 8 on two threads, as JSON."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

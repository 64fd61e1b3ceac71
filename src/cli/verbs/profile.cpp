// `autograph profile MODEL -o FILE.json`: where the time goes, as a Chrome trace and as a table.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "autograph/error.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "cli/execute.h"
#include "cli/options/training_flags.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/chrome_trace.h"
#include "report/critical_path.h"
#include "report/profile_report.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  TrainingFlags training;
  std::string output;
  int64_t warmup = 3;
  int64_t runs = 5;
  int64_t top = 20;
};

// Profiles of several runs; the one that took least says most about the kernels.
std::vector<StepProfile> fastest_profile(Session& session, const Executable& executable,
                                         const std::vector<Datum>& inputs, const Options& options) {
  std::vector<StepProfile> fastest;
  for (int64_t i = 0; i < options.warmup + options.runs; ++i) {
    executable.run(inputs);
    session.progress("running", static_cast<double>(i) / static_cast<double>(options.warmup + options.runs));
    if (i < options.warmup) continue;
    std::vector<StepProfile> steps = executable.profile();
    if (fastest.empty() || run_times(steps).run_us < run_times(fastest).run_us) fastest = std::move(steps);
  }
  session.end_progress();
  return fastest;
}

// A simulated device runs kernels of this machine; it has a clock for whole runs alone.
std::string host_times_note(const std::string& device, const std::optional<double>& simulated_ms) {
  if (!simulated_ms) return "";
  return fmt::format(
      "times are of THIS MACHINE, which computes for the simulated device '{}'; by its clock a run takes {}\n\n",
      device, human_ms(*simulated_ms));
}

void check_options(const Options& options) {
  AG_CHECK_USER(options.warmup >= 0, UserError, "[cli] warmup: expected 0 or more, got {}", options.warmup);
  AG_CHECK_USER(options.runs >= 1, UserError, "[cli] runs: expected 1 or more, got {}", options.runs);
  AG_CHECK_USER(options.top >= 0, UserError, "[cli] top: expected 0 or more, got {}", options.top);
  if (!options.output.empty()) require_writable(options.output);
}

int run(Session& session, const Options& options) {
  check_options(options);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  make_training_step(loaded, options.training, "profile --train");
  const std::vector<Datum>& inputs = given_inputs(session, loaded, options.model);
  const CompiledModel compiled = compile_model(session, loaded, options.run, {.profile = true});
  const Executable& executable = compiled.executable;
  ProfileReport report;
  report.steps = fastest_profile(session, executable, inputs, options);
  log_plan(session, executable);
  if (!options.output.empty()) write_file(options.output, chrome_trace(report.steps, loaded.name));
  const double critical_ms = critical_path_us(executable.graph(), report.steps) / 1000;
  report.choices = executable.kernel_choices();
  report.threads = executable.threads();
  report.peak = measure_machine_peak(report.threads);
  std::stable_sort(report.steps.begin(), report.steps.end(),
                   [](const StepProfile& a, const StepProfile& b) { return a.duration_us > b.duration_us; });
  Json::Object document = {{"model", loaded.name}};
  for (auto& member : profile_json(report)) document.push_back(std::move(member));
  document.emplace_back("critical_path_ms", critical_ms);
  document.emplace_back("strategy", compiled.strategy);
  document.emplace_back("streams", compiled.streams);
  document.emplace_back("file", options.output);
  const std::optional<double> simulated_ms = executable.simulated_latency_ms();
  document.emplace_back("simulated_latency_ms", simulated_ms ? Json(*simulated_ms) : Json());
  session.print(std::move(document),
                host_times_note(options.run.device, simulated_ms) +
                    profile_text(report, static_cast<size_t>(options.top), session.stdout_escapes()) +
                    fmt::format("longest path {}\n", human_ms(critical_ms)));
  return 0;
}

}  // namespace

Command profile_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "-o,--output,--trace",
                   .value_name = "FILE.json",
                   .doc = "Chrome trace to write, for chrome://tracing or Perfetto.",
                   .target = &options->output,
                   .kind = ValueKind::file});
  table.push_back({.names = "--warmup",
                   .value_name = "N",
                   .doc = "Runs before those that are recorded; 3 when not given.",
                   .target = &options->warmup});
  table.push_back({.names = "--runs",
                   .value_name = "N",
                   .doc = "Runs that are recorded, of which the fastest counts; 5 when not given.",
                   .target = &options->runs});
  table.push_back(input_option(options->model));
  table.push_back(
      {.names = "--top", .value_name = "N", .doc = "Rows of the table; 20 when not given.", .target = &options->top});
  for (Option& option : training_option_table(options->training)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "profile",
      .doc = "where the time goes: a table of ops and a Chrome trace",
      .details =
          "Beside its time, each op shows operations and bytes a second and how near they come to the measured peak of "
          "the machine (see `autograph doctor --peak`): of the multiply-add units, or of the level of memory that "
          "holds the bytes it moves, whichever is nearer. Below stand sums by op, the kernels that were not taken and "
          "why, and the share of the run in which no kernel ran. Of a simulated device these are times of this "
          "machine, which computes for it; beside them stands what its clock says of the whole.",
      .examples = {{"autograph profile zoo:squeezenet -o trace.json", "Trace of one run, and its slowest ops."},
                   {"autograph profile model.onnx --top 5", "The five slowest ops, no trace."},
                   {"autograph profile zoo:squeezenet --train --batch 8", "Of a step of training."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

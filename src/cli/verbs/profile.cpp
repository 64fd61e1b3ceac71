// `autograph profile MODEL -o FILE.json`: where the time goes, as a Chrome trace and as a table.
#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "autograph/error.h"
#include "base/check.h"
#include "cli/execute.h"
#include "cli/verbs.h"
#include "report/chrome_trace.h"
#include "report/critical_path.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  std::string output;
  int64_t warmup = 3;
  int64_t top = 20;
};

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.warmup >= 0, UserError, "[cli] warmup: expected 0 or more, got {}", options.warmup);
  if (!options.output.empty()) require_writable(options.output);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const std::vector<Datum> inputs = seeded_inputs(loaded.model.graph, loaded.seeds);
  CompileOptions compile_as = compile_options(options.run);
  compile_as.profile = true;
  const Executable executable = compile_logged(session, std::move(loaded.model.graph), compile_as);
  for (int64_t i = 0; i <= options.warmup; ++i) executable.run(inputs);
  log_plan(session, executable);
  std::vector<StepProfile> steps = executable.profile();
  if (!options.output.empty()) write_file(options.output, chrome_trace(steps, loaded.name));
  const double critical_ms = critical_path_us(executable.graph(), steps) / 1000;
  double total_ms = 0;
  for (const StepProfile& step : steps) total_ms += step.duration_us / 1000;
  std::stable_sort(steps.begin(), steps.end(),
                   [](const StepProfile& a, const StepProfile& b) { return a.duration_us > b.duration_us; });
  Json list = Json::array();
  Table table({{"ms", true}, {"share", true}, {"op"}, {"kernel"}, {"node"}});
  for (size_t i = 0; i < steps.size(); ++i) {
    const StepProfile& step = steps[i];
    const double ms = step.duration_us / 1000;
    const double share = total_ms > 0 ? ms / total_ms : 0;
    list.push(Json::object({{"name", step.name},
                            {"op", step.op},
                            {"ms", ms},
                            {"share", share},
                            {"kernel", step.kernel},
                            {"stream", step.stream}}));
    if (static_cast<int64_t>(i) < options.top) {
      table.add({fmt::format("{:.3f}", ms), fmt::format("{:.1f} %", share * 100), step.op, step.kernel, step.name});
    }
  }
  const auto rest = static_cast<int64_t>(steps.size()) - options.top;
  const std::string more = rest > 0 ? fmt::format("({} more)\n", rest) : "";
  session.print({{"model", loaded.name},
                 {"ops", std::move(list)},
                 {"critical_path_ms", critical_ms},
                 {"total_ms", total_ms},
                 {"file", options.output}},
                table.to_string(session.stdout_escapes()) + more +
                    fmt::format("\n{} in all, {} on the longest path\n", human_ms(total_ms), human_ms(critical_ms)));
  return 0;
}

}  // namespace

Command profile_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "-o,--output",
                   .value_name = "FILE.json",
                   .doc = "Chrome trace to write, for chrome://tracing or Perfetto.",
                   .target = &options->output,
                   .kind = ValueKind::file});
  table.push_back({.names = "--warmup",
                   .value_name = "N",
                   .doc = "Runs before the one that is recorded; 3 when not given.",
                   .target = &options->warmup});
  table.push_back(
      {.names = "--top", .value_name = "N", .doc = "Rows of the table; 20 when not given.", .target = &options->top});
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "profile",
      .doc = "where the time goes: a table of ops and a Chrome trace",
      .examples = {{"autograph profile zoo:squeezenet -o trace.json", "Trace of one run, and its slowest ops."},
                   {"autograph profile model.onnx --top 5", "The five slowest ops, no trace."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

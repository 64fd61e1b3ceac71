// `autograph optimize MODEL -o OUT.onnx`: runs the passes, verifies the result on the device, saves it.
#include <fmt/core.h>

#include <map>

#include "autograph/error.h"
#include "base/check.h"
#include "cli/execute.h"
#include "cli/verbs.h"
#include "autograph/compare_values.h"
#include "report/graph_summary.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  Tolerance tolerance;
  std::string output;
  double seconds = 1;
};

struct Outcome {
  double before_ms = 0;
  double after_ms = 0;
  double compile_ms = 0;
  int64_t nodes_after = 0;
  Difference worst;
};

void check_output(const std::string& output) {
  if (output.ends_with(".agplan")) {
    throw UnsupportedError("[cli] output: this build does not write saved plans (.agplan); name an .onnx file");
  }
  AG_CHECK_USER(output.ends_with(".onnx"), UserError, "[cli] output: expected a name ending in .onnx, got '{}'",
                output);
  require_writable(output);
}

Difference worst_of(const std::vector<Datum>& actual, const std::vector<Datum>& expected, const Tolerance& tolerance) {
  Difference worst;
  for (size_t i = 0; i < actual.size(); ++i) {
    const Difference one = compare_values(actual[i], expected[i], tolerance);
    if (worst.ok && !one.ok) worst.why = one.why;
    worst.ok = worst.ok && one.ok;
    worst.max_abs = std::max(worst.max_abs, one.max_abs);
    worst.max_rel = std::max(worst.max_rel, one.max_rel);
  }
  return worst;
}

Outcome optimize(Session& session, const Model& model, const std::vector<Datum>& inputs, const Options& options) {
  const Graph& graph = model.graph;
  CompileOptions plain = compile_options(options.run);
  plain.optimize = false;
  plain.release_weights = false;  // the graph is saved in the end
  const Executable before = compile_logged(session, graph, plain);
  CompileOptions optimized = plain;
  optimized.optimize = true;
  const Stopwatch compiling;
  const Executable after = compile_logged(session, graph, optimized);
  Outcome outcome;
  outcome.compile_ms = compiling.ms();
  outcome.nodes_after = static_cast<int64_t>(after.graph().num_nodes());
  outcome.worst = worst_of(after.run(inputs), before.run(inputs), options.tolerance);
  if (!outcome.worst.ok) return outcome;
  outcome.before_ms = measure(session, before, inputs, 1, options.seconds).quantile(0.5);
  outcome.after_ms = measure(session, after, inputs, 1, options.seconds).quantile(0.5);
  save_onnx(after.graph(), options.output, {.doc = model.doc, .metadata = model.metadata});
  return outcome;
}

// Only passes run, which try nothing out: what a search would have counted stays 0, costs unknown.
constexpr int kNoSearch = 0;

int run(Session& session, const Options& options) {
  check_output(options.output);
  AG_CHECK_USER(options.seconds >= 0 && options.seconds <= 86400, UserError, "[cli] seconds: expected 0..86400, got {}",
                options.seconds);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const Graph& graph = loaded.model.graph;
  const std::vector<Datum> inputs = seeded_inputs(graph, loaded.seeds);
  const auto nodes_before = static_cast<int64_t>(graph.num_nodes());
  const Outcome outcome = optimize(session, loaded.model, inputs, options);
  const Difference& worst = outcome.worst;
  if (!worst.ok)
    session.error("[optimize] the optimised graph gives other numbers, so nothing was saved: " + worst.why);
  session.print({{"model", loaded.name},
                 {"file", worst.ok ? Json(options.output) : Json()},
                 {"latency_before_ms", outcome.before_ms},
                 {"latency_after_ms", outcome.after_ms},
                 {"nodes_before", nodes_before},
                 {"nodes_after", outcome.nodes_after},
                 {"compile_ms", outcome.compile_ms},
                 {"cost_before", Json()},
                 {"cost_after", Json()},
                 {"candidates", kNoSearch},
                 {"measured", kNoSearch},
                 {"rules_applied", Json::array()},
                 {"partitions", kNoSearch},
                 {"search_seconds", kNoSearch},
                 {"max_abs", worst.max_abs},
                 {"max_rel", worst.max_rel}},
                pairs_to_string({{"model", loaded.name},
                                 {"nodes", fmt::format("{} -> {}", nodes_before, outcome.nodes_after)},
                                 {"compile", human_ms(outcome.compile_ms)},
                                 {"latency", human_ms(outcome.before_ms) + " -> " + human_ms(outcome.after_ms)},
                                 {"max abs", fmt::format("{:.3g}", worst.max_abs)},
                                 {"max rel", fmt::format("{:.3g}", worst.max_rel)},
                                 {"file", worst.ok ? options.output : "not saved"}}));
  return static_cast<int>(worst.ok ? ExitCode::done : ExitCode::mismatch);
}

}  // namespace

Command optimize_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "-o,--output",
                   .value_name = "OUT.onnx",
                   .doc = "File to write.",
                   .target = &options->output,
                   .kind = ValueKind::file,
                   .required = true});
  table.push_back({.names = "--seconds",
                   .value_name = "T",
                   .doc = "How long to measure before and after; 1 each when not given.",
                   .target = &options->seconds});
  for (Option& option : run_option_table(options->run)) {
    if (option.names != "--no-optimize") table.push_back(std::move(option));
  }
  return {
      .name = "optimize",
      .doc = "run the passes on a model, verify, save",
      .details =
          "The result is compared with the model as it was on seeded inputs, and saved only when the numbers agree "
          "(exit 6 otherwise). Latencies are medians. The passes always pay and try nothing out: fields of the JSON "
          "document that belong to a search are 0 or null.",
      .examples = {{"autograph optimize model.onnx -o small.onnx", "Simplify a model."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

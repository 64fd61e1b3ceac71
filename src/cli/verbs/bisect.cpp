// `autograph bisect MODEL`: which pass, rule or kernel changes the numbers, and the smallest model that shows it.
#include "autograph/bisect.h"

#include <fmt/core.h>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/join.h"
#include "base/printable.h"
#include "cli/execute.h"
#include "cli/interrupt.h"
#include "cli/options/search_flags.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  SearchFlags search;
  Tolerance tolerance;
  std::string output;
};

// The inputs on which the smallest model fails, beside it: the flags that give them to `run` and `check`.
std::vector<std::string> write_inputs(const BisectReport& report, const std::string& output) {
  std::vector<std::string> flags;
  for (size_t i = 0; i < report.inputs.size(); ++i) {
    if (!report.inputs[i].is_tensor()) continue;
    const std::string path = fmt::format("{}.input_{}.npy", output.substr(0, output.size() - 5), i);
    write_npy(path, report.inputs[i].tensor());
    flags.push_back(fmt::format("{}={}", report.smallest.value(report.smallest.inputs()[i]).name(), path));
  }
  return flags;
}

std::string verdict(const BisectReport& report) {
  switch (report.culprit) {
    case Culprit::none: return "numbers agree: nothing to find";
    case Culprit::pass: return fmt::format("pass '{}' (number {}) changes the numbers", report.name, report.position);
    case Culprit::rule:
      if (report.where.empty()) return fmt::format("rule '{}' changes the numbers", report.name);
      return fmt::format("rule '{}' changes the numbers at {} (rewrite {})", report.name, report.where,
                         report.position);
    case Culprit::kernel: return fmt::format("the graph is right, kernels are not: {}", report.name);
    case Culprit::schedule: return fmt::format("right on one stream, wrong with the schedule of '{}'", report.name);
  }
  return "";
}

int print(Session& session, const Options& options, const LoadedModel& loaded, const BisectReport& report,
          const std::vector<std::string>& input_flags) {
  const bool found = report.culprit != Culprit::none;
  const bool saved = found && !options.output.empty();
  std::vector<std::pair<std::string, std::string>> rows = {{"model", loaded.name}, {"found", verdict(report)}};
  if (found) {
    rows.emplace_back("difference", fmt::format("max abs {:.3g}, max rel {:.3g}: {}", report.difference.max_abs,
                                                report.difference.max_rel, report.difference.why));
    rows.emplace_back("smallest", fmt::format("{} of {} nodes{}", report.smallest.num_nodes(),
                                              loaded.model.graph.num_nodes(), report.is_complete ? "" : " (so far)"));
    constexpr size_t kShown = 20;
    for (size_t i = 0; i < std::min(report.nodes.size(), kShown); ++i) rows.emplace_back("", report.nodes[i]);
    if (report.nodes.size() > kShown) rows.emplace_back("", "...");
  }
  rows.emplace_back("trials", fmt::format("{}", report.trials));
  if (saved) rows.emplace_back("file", options.output);
  std::string text = pairs_to_string(rows);
  if (saved) {
    text += fmt::format("\nautograph check {}{}{}\n", options.output, input_flags.empty() ? "" : " --input ",
                        printable(join(input_flags, " --input ")));
  }
  session.print({{"model", loaded.name},
                 {"ok", !found},
                 {"culprit", std::string(to_string(report.culprit))},
                 {"name", report.name},
                 {"position", report.position},
                 {"where", report.where},
                 {"nodes", report.nodes},
                 {"max_abs", report.difference.max_abs},
                 {"max_rel", report.difference.max_rel},
                 {"why", report.difference.why},
                 {"nodes_before", loaded.model.graph.num_nodes()},
                 {"nodes_after", report.smallest.num_nodes()},
                 {"complete", report.is_complete},
                 {"trials", report.trials},
                 {"inputs", input_flags},
                 {"file", saved ? Json(options.output) : Json()}},
                text);
  if (InterruptScope::was_interrupted()) return static_cast<int>(ExitCode::interrupted);
  return static_cast<int>(found ? ExitCode::mismatch : ExitCode::done);
}

int run(Session& session, const Options& given) {
  Options options = given;
  options.run.strategy = to_string(strategy_of(given.run));
  check_tolerance(options.tolerance);
  if (!options.output.empty()) {
    AG_CHECK_USER(options.output.ends_with(".onnx"), UserError,
                  "[cli] output: expected a name ending in .onnx, got '{}'", options.output);
    require_writable(options.output);
  }
  LoadedModel loaded = load_model(session, options.model);
  refuse_plan(loaded, "bisect");
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const std::vector<Datum>& inputs = given_inputs(session, loaded, options.model);
  bind_extents(loaded);
  BisectOptions how;
  how.tolerance = tolerance_for(loaded.model.graph, options.run, options.tolerance);
  how.search = search_options(options.search, options.run);
  how.on_progress = [&session](std::string_view what, size_t trials) {
    session.progress(fmt::format("trial {}: {}", trials + 1, what), -1);
  };
  how.is_cancelled = [] { return InterruptScope::was_interrupted(); };
  const InterruptScope scope;
  const BisectReport report = bisect(loaded.model.graph, compile_options(options.run), inputs, how);
  session.end_progress();
  std::vector<std::string> input_flags;
  if (report.culprit != Culprit::none && !options.output.empty()) {
    save_onnx(report.smallest, options.output);
    input_flags = write_inputs(report, options.output);
  }
  return print(session, options, loaded, report, input_flags);
}

}  // namespace

Command bisect_command() {
  auto options = std::make_shared<Options>();
  options->run.budget_seconds = 5;
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "-o,--output",
                   .value_name = "OUT.onnx",
                   .doc = "Where to write the smallest failing model, its inputs beside it as .npy.",
                   .target = &options->output,
                   .kind = ValueKind::file});
  table.push_back({.names = "--rtol",
                   .value_name = "R",
                   .doc = "Allowed difference relative to the expected element; 1e-3 when not given.",
                   .target = &options->tolerance.rtol});
  table.push_back({.names = "--atol",
                   .value_name = "A",
                   .doc = "Allowed absolute difference; 1e-4 of the output's largest magnitude when not given.",
                   .target = &options->tolerance.atol});
  table.push_back(input_option(options->model));
  for (Option& option : search_option_table(options->search)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) {
    if (option.names == "--check-nan" || option.names == "--check-every-node") continue;
    if (option.names == "--strategy") option.doc = "Also look at what this strategy does; passes alone when not given.";
    if (option.names == "--budget") option.doc = "How long each search may take; 5 when not given.";
    table.push_back(std::move(option));
  }
  return {
      .name = "bisect",
      .doc = "which pass, rule or kernel makes the numbers wrong",
      .details =
          "Compares the model with the reference backend. Where they differ, finds the first pass behind which they "
          "do, or the rule of a strategy, or the kernels when the graph itself is right; then leaves out nodes as long "
          "as the rest still fails, each part fed with what it gets inside the model. Exit code 6 when something was "
          "found. Ctrl-C ends the shrinking with the smallest part so far.",
      .examples = {{"autograph bisect model.onnx -o smallest.onnx", "Who was it, and a model to report."},
                   {"autograph bisect model.onnx --strategy autograph", "Also look at the rules of a search."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

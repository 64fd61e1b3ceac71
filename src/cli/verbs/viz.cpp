// `autograph viz MODEL -o FILE`: a picture of the graph.
#include <fmt/core.h>

#include "autograph/error.h"
#include "base/check.h"
#include "base/files/output_file.h"
#include "cli/execute.h"
#include "cli/graphviz.h"
#include "cli/options/search_flags.h"
#include "cli/verbs.h"
#include "report/picture/graph_picture.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  bool graph = false;
  std::string output;
  PictureOptions picture;
  double timeout = 60;
};

// What runs where, as a strategy finds it now; measured on the device.
SavedPlan find_plan(Session& session, LoadedModel& loaded, const RunOptions& run) {
  CompileOptions compile_as = compile_options(run);
  compile_as.release_weights = false;
  Optimized found = search(session, loaded, compile_as, search_options(SearchFlags(), run));
  return make_plan(std::move(found), compile_as, loaded.name, static_cast<uint64_t>(run.seed));
}

std::string dot_of(Session& session, LoadedModel& loaded, const Options& options) {
  std::optional<SavedPlan> plan;
  if (!options.run.strategy.empty()) {
    refuse_plan(loaded, "viz --strategy");
    plan = find_plan(session, loaded, options.run);
  } else if (loaded.plan && !options.graph) {
    plan = *loaded.plan;
  }
  if (!plan) return graph_to_dot(loaded.model.graph, options.picture);
  return schedule_to_dot(plan->optimized.graph, {plan->optimized.schedule, plan->node_us},
                         fmt::format("{} by {}", loaded.name, to_string(plan->optimized.report.strategy)));
}

std::string picture(Session& session, LoadedModel& loaded, const Options& options) {
  std::string dot = dot_of(session, loaded, options);
  session.progress("drawing", -1);
  if (options.output.ends_with(".dot")) return dot;
  const std::string svg = run_graphviz(dot, "svg", options.timeout);
  return options.output.ends_with(".svg") ? svg : picture_page(loaded.name, svg);
}

void check_options(const Options& options) {
  AG_CHECK_USER(options.picture.depth >= -1, UserError, "[cli] depth: expected 0 or more, got {}",
                options.picture.depth);
  AG_CHECK_USER(options.picture.max_boxes >= 1, UserError, "[cli] max-boxes: expected 1 or more, got {}",
                options.picture.max_boxes);
  AG_CHECK_USER(options.timeout > 0 && options.timeout <= 86400, UserError,
                "[cli] timeout: expected more than 0 and up to 86400 seconds, got {}", options.timeout);
}

int run(Session& session, const Options& options) {
  check_options(options);
  if (!options.output.ends_with(".dot") && !options.output.ends_with(".svg") && !options.output.ends_with(".html")) {
    throw UserError(
        fmt::format("[viz] output: expected a name ending in .html, .svg or .dot, got '{}'", options.output));
  }
  require_writable(options.output);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  write_file(options.output, picture(session, loaded, options));
  session.print({{"model", loaded.name}, {"file", options.output}}, options.output + "\n");
  return 0;
}

}  // namespace

Command viz_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "-o,--output",
                   .value_name = "FILE",
                   .doc = "Picture to write: .html (moves and zooms), .svg or .dot.",
                   .target = &options->output,
                   .kind = ValueKind::file,
                   .required = true});
  table.push_back({.names = "--depth",
                   .value_name = "N",
                   .doc = "Scopes below the top to show; as many as keep the picture readable when not given.",
                   .target = &options->picture.depth});
  table.push_back({.names = "--expand",
                   .value_name = "SCOPE",
                   .doc = "Show this scope one level deeper. May be repeated.",
                   .target = &options->picture.expand});
  table.push_back({.names = "--max-boxes",
                   .value_name = "N",
                   .doc = "Collapse scopes until at most this many boxes remain; 60 when not given.",
                   .target = &options->picture.max_boxes});
  table.push_back({.names = "--graph",
                   .doc = "Of a saved plan draw the graph alone, not what runs where.",
                   .target = &options->graph});
  table.push_back({.names = "--timeout",
                   .value_name = "SECONDS",
                   .doc = "How long the layout may take (exit 8); 60 when not given.",
                   .target = &options->timeout});
  for (Option& option : run_option_table(options->run)) {
    if (option.names == "--strategy") {
      option.doc = "Draw what this strategy makes of the model: streams, stages, times, critical path.";
    } else if (option.names != "--budget" && option.names != "--threads" && option.names != "--device") {
      continue;
    }
    table.push_back(std::move(option));
  }
  return {
      .name = "viz",
      .doc = "a picture of a model",
      .details =
          "Nodes that share the beginning of their names (scopes, separated by '/') are drawn as one box when the "
          "graph is large. Of a saved plan, or with --strategy, every node is drawn with the stream that runs it as "
          "its colour, stages with several streams as frames, and the critical path of the measured times in red. "
          "Layout is done by the program dot of graphviz.",
      .examples = {{"autograph viz model.onnx -o model.html", "A page to move and zoom in."},
                   {"autograph viz zoo:resnet50 -o resnet.svg --depth 1", "One box for each stage."},
                   {"autograph viz model.agplan -o plan.svg", "What runs where."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

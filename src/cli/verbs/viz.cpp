// `autograph viz MODEL -o FILE`: a picture of the graph.
#include <fmt/core.h>

#include "autograph/error.h"
#include "cli/graphviz.h"
#include "cli/model_source.h"
#include "cli/verbs.h"
#include "report/graph_picture.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  std::string output;
  PictureOptions picture;
  double timeout = 60;
};

std::string picture(const LoadedModel& loaded, const Options& options) {
  std::string dot = graph_to_dot(loaded.model.graph, options.picture);
  if (options.output.ends_with(".dot")) return dot;
  const std::string svg = run_graphviz(dot, "svg", options.timeout);
  return options.output.ends_with(".svg") ? svg : picture_page(loaded.name, svg);
}

int run(Session& session, const Options& options) {
  if (!options.output.ends_with(".dot") && !options.output.ends_with(".svg") && !options.output.ends_with(".html")) {
    throw UserError(
        fmt::format("[viz] output: expected a name ending in .html, .svg or .dot, got '{}'", options.output));
  }
  require_writable(options.output);
  const LoadedModel loaded = load_model(session, options.model);
  session.progress("drawing", -1);
  write_file(options.output, picture(loaded, options));
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
  table.push_back({.names = "--timeout",
                   .value_name = "SECONDS",
                   .doc = "How long the layout may take (exit 8); 60 when not given.",
                   .target = &options->timeout});
  return {
      .name = "viz",
      .doc = "a picture of a model",
      .details =
          "Nodes that share the beginning of their names (scopes, separated by '/') are drawn as one box when the "
          "graph is large. Layout is done by the program dot of graphviz.",
      .examples = {{"autograph viz model.onnx -o model.html", "A page to move and zoom in."},
                   {"autograph viz zoo:resnet50 -o resnet.svg --depth 1", "One box for each stage."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

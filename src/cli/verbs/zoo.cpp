// `autograph zoo list` and `autograph zoo export NAME -o FILE.onnx`: the built-in models.
#include <fmt/core.h>

#include "autograph/error.h"
#include "autograph/model_io.h"
#include "autograph/zoo.h"
#include "base/check.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/graph_summary.h"
#include "report/table.h"
#include "report/type_json.h"

namespace autograph::cli {
namespace {

struct ExportOptions {
  std::string name;
  std::string output;
  int64_t batch = 1;
  int64_t opset = SaveOptions().opset;
};

int list(Session& session) {
  Json models = Json::array();
  Table table({{"model"}, {"nodes", true}, {"parameters", true}, {"work", true}, {"input"}, {"what it is"}});
  for (const ZooEntry& entry : zoo_models()) {
    const Graph graph = outline_zoo_model(entry.name);
    const GraphSummary summary = summarize(graph);
    const Type input = graph.inputs().empty() ? Type() : graph.type(graph.inputs()[0]);
    models.push(Json::object({{"name", entry.name},
                              {"nodes", summary.nodes},
                              {"parameters", summary.parameters},
                              {"flops", summary.flops},
                              {"input", inputs_json(graph)},
                              {"description", entry.description},
                              {"is_variant", entry.is_variant}}));
    table.add({entry.name, fmt::format("{}", summary.nodes), human_count(static_cast<double>(summary.parameters)),
               human_count(summary.flops, "FLOP"), to_string(input), entry.description});
  }
  session.print({{"models", std::move(models)}}, table.to_string(session.stdout_escapes()));
  return 0;
}

int export_model(Session& session, const ExportOptions& options) {
  AG_CHECK_USER(options.output.ends_with(".onnx"), UserError, "[zoo] output: expected a name ending in .onnx, got '{}'",
                options.output);
  AG_CHECK_USER(options.batch >= 1, UserError, "[zoo] batch: expected 1 or more, got {}", options.batch);
  AG_CHECK_USER(options.opset >= 7 && options.opset <= 1000, UserError, "[zoo] opset: expected 7 or more, got {}",
                options.opset);
  require_writable(options.output);
  const Graph graph = build_zoo_model(options.name, options.batch);
  SaveOptions save;
  save.opset = static_cast<int>(options.opset);
  save_onnx(graph, options.output, save);
  session.print({{"model", options.name}, {"file", options.output}}, options.output + "\n");
  return 0;
}

Command list_command() {
  return {
      .name = "list",
      .doc = "the models with their sizes",
      .examples = {{"autograph zoo list", "All of them."}},
      .run = [](Session& session) { return list(session); },
  };
}

Command export_command() {
  auto options = std::make_shared<ExportOptions>();
  return {
      .name = "export",
      .doc = "write a model as ONNX",
      .details = "Weights come from a fixed seed: the file is the same every time.",
      .examples = {{"autograph zoo export squeezenet -o squeezenet.onnx", "For another runtime to run."}},
      .options = {{.names = "NAME",
                   .doc = "A built-in model.",
                   .target = &options->name,
                   .kind = ValueKind::zoo_model,
                   .required = true},
                  {.names = "-o,--output",
                   .value_name = "FILE.onnx",
                   .doc = "File to write.",
                   .target = &options->output,
                   .kind = ValueKind::file,
                   .required = true},
                  {.names = "--batch", .value_name = "N", .doc = "Batch; 1 when not given.", .target = &options->batch},
                  {.names = "--opset",
                   .value_name = "N",
                   .doc = fmt::format("ONNX opset to write; {} when not given.", options->opset),
                   .target = &options->opset}},
      .run = [options](Session& session) { return export_model(session, *options); },
  };
}

}  // namespace

Command zoo_command() {
  return {
      .name = "zoo",
      .doc = "the built-in models",
      .examples = {{"autograph zoo list", "Names, sizes and inputs."},
                   {"autograph zoo export bert -o bert.onnx", "Write one as ONNX."}},
      .commands = {list_command(), export_command()},
  };
}

}  // namespace autograph::cli

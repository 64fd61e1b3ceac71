// `autograph grad MODEL -o OUT.onnx`: a model whose outputs are a loss and its gradients.
#include <fmt/core.h>

#include "autograph/autodiff.h"
#include "autograph/error.h"
#include "base/check.h"
#include "cli/options/loss_option.h"
#include "cli/sources/model_source.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  GradientGraphOptions gradients;
  int64_t seed = 0;
  std::string output;
};

// Extents stay open but where somebody gives them, or where each element of the outputs has a weight of its own.
bool needs_extents(const LoadedModel& loaded, const Options& options) {
  return options.gradients.loss == "sum" || loaded.seeds.batch || !loaded.seeds.dims.empty();
}

int run(Session& session, const Options& options) {
  AG_CHECK_USER(options.output.ends_with(".onnx"), UserError,
                "[grad] output: expected a name ending in .onnx, got '{}'", options.output);
  require_writable(options.output);
  LoadedModel loaded = load_model(session, options.model);
  refuse_plan(loaded, "grad");
  if (needs_extents(loaded, options)) bind_extents(loaded);
  GradientGraphOptions gradients = options.gradients;
  gradients.seed = static_cast<uint64_t>(options.seed);
  const Graph graph = gradient_graph(loaded.model.graph, gradients);
  save_onnx(graph, options.output, {.doc = loaded.model.doc, .metadata = loaded.model.metadata});

  constexpr std::string_view kPrefix = "grad/";
  Json list = Json::array();
  Table table({{"gradient of"}, {"type"}});
  for (size_t k = 1; k < graph.outputs().size(); ++k) {
    const std::string name = graph.output_name(k).substr(kPrefix.size());
    const Type& type = graph.type(graph.outputs()[k]);
    list.push(Json::object({{"name", name}, {"shape", to_string(type.shape())}}));
    table.add({name, to_string(type)});
  }
  session.print({{"model", loaded.name},
                 {"file", options.output},
                 {"loss", options.gradients.loss},
                 {"nodes", graph.num_nodes()},
                 {"gradients", std::move(list)}},
                table.to_string(session.stdout_escapes()) + options.output + "\n");
  return 0;
}

}  // namespace

Command grad_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back(loss_option(options->gradients.loss, "", "sum when not given."));
  table.push_back({.names = "--wrt",
                   .value_name = "PATTERN",
                   .doc = "Names of inputs and weights, with * and ?; all when not given.",
                   .target = &options->gradients.wanted});
  table.push_back({.names = "--seed",
                   .value_name = "N",
                   .doc = "Of the weights of --loss sum; 0 when not given.",
                   .target = &options->seed});
  table.push_back({.names = "-o,--output",
                   .value_name = "FILE.onnx",
                   .doc = "File to write.",
                   .target = &options->output,
                   .kind = ValueKind::file,
                   .required = true});
  return {
      .name = "grad",
      .doc = "write a model that gives a loss and its gradients",
      .details =
          "The result has the inputs of the model. Its outputs are loss and, for each float input and weight with a "
          "name that matches, grad/NAME. Extents that are open stay so, unless --batch or --dim gives them; --loss "
          "sum, whose weights belong to elements, takes those that `run` would.",
      .examples = {{"autograph grad model.onnx -o gradients.onnx", "Of a weighted sum of all outputs."},
                   {"autograph grad zoo:mlp --loss mean --wrt '*weight' -o g.onnx", "Of some weights."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

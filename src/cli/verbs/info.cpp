// `autograph info MODEL`: what is in a model. Neither compiles nor copies weights.
#include <fmt/core.h>

#include "base/join.h"
#include "cli/model_source.h"
#include "cli/session.h"
#include "cli/verbs.h"
#include "report/graph_summary.h"
#include "report/graph_width.h"
#include "report/table.h"
#include "report/type_json.h"

namespace autograph::cli {
namespace {

int run(Session& session, const ModelOptions& options) {
  const LoadedModel loaded = load_model(session, options);
  const Graph bound =
      options.batch > 0 || !options.dims.empty() ? bind_inputs(loaded.model.graph, loaded.seeds) : Graph();
  const Graph& graph = bound.outputs().empty() ? loaded.model.graph : bound;
  const GraphSummary summary = summarize(graph);
  const GraphExtent extent = measure_extent(graph);
  const auto opset = loaded.model.opsets.find("");
  Json ops = Json::object();
  Table op_table({{"op"}, {"count", true}});
  for (const auto& [name, count] : summary.ops) {
    ops.add(name, count);
    op_table.add({name, fmt::format("{}", count)});
  }
  Json opsets = Json::object();
  for (const auto& [domain, number] : loaded.model.opsets) opsets.add(domain.empty() ? "ai.onnx" : domain, number);
  std::vector<std::pair<std::string, std::string>> rows = {
      {"model", loaded.name},
      {"opset", opset == loaded.model.opsets.end() ? "none" : fmt::format("{}", opset->second)},
      {"producer", loaded.model.producer},
      {"nodes", fmt::format("{}", summary.nodes)},
      {"width", fmt::format("{}", extent.width)},
      {"depth", fmt::format("{}", extent.depth)},
      {"parameters", fmt::format("{} ({})", human_count(static_cast<double>(summary.parameters)),
                                 human_bytes(static_cast<double>(summary.parameter_bytes)))},
      {"work", human_count(summary.flops, "FLOP") + ", " + human_bytes(summary.bytes) + " moved"}};
  if (summary.nodes_without_cost > 0) {
    rows.emplace_back("", fmt::format("not counting {} nodes whose shapes depend on data", summary.nodes_without_cost));
  }
  for (const ValueId id : graph.inputs())
    rows.emplace_back("input", graph.value(id).name() + " " + to_string(graph.type(id)));
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    rows.emplace_back("output", graph.output_name(i) + " " + to_string(graph.type(graph.outputs()[i])));
  }
  session.print({{"model", loaded.name},
                 {"opset", opset == loaded.model.opsets.end() ? Json() : Json(opset->second)},
                 {"opsets", std::move(opsets)},
                 {"producer", loaded.model.producer},
                 {"nodes", summary.nodes},
                 {"ops", std::move(ops)},
                 {"inputs", inputs_json(graph)},
                 {"outputs", outputs_json(graph)},
                 {"parameters", summary.parameters},
                 {"parameter_bytes", summary.parameter_bytes},
                 {"flops", summary.flops},
                 {"bytes_moved", summary.bytes},
                 {"nodes_without_cost", summary.nodes_without_cost},
                 {"width", extent.width},
                 {"depth", extent.depth}},
                pairs_to_string(rows) + "\n" + op_table.to_string(session.stdout_escapes()));
  return 0;
}

}  // namespace

Command info_command() {
  auto options = std::make_shared<ModelOptions>();
  return {
      .name = "info",
      .doc = "what is in a model: ops, inputs, outputs, parameters, work",
      .details =
          "Width is the largest number of ops of which none depends on another (exact up to 20,000 ops), depth the "
          "number of ops on the longest path. Work is counted for the extents that --batch and --dim give to symbols.",
      .examples = {{"autograph info model.onnx", "A table."},
                   {"autograph info zoo:resnet50?batch=8 --json", "The same facts as JSON."}},
      .options = model_option_table(*options),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

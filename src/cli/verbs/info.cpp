// `autograph info MODEL`: what is in a model. Neither compiles nor copies weights, unless it is asked what passes do.
#include <fmt/core.h>

#include "autograph/compile.h"
#include "autograph/error.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/options/run_options.h"
#include "cli/session.h"
#include "cli/sources/model_source.h"
#include "cli/verbs.h"
#include "report/graph_summary.h"
#include "report/graph_width.h"
#include "report/peak_report.h"
#include "report/table.h"
#include "report/type_json.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  bool roofline = false;
  bool passes = false;
  int64_t threads = 0;
};

// What the machine's measured peak allows at best; nothing when it was not asked for.
Json roofline_json(const Options& options, const GraphSummary& summary,
                   std::vector<std::pair<std::string, std::string>>& rows) {
  if (!options.roofline) return {};
  const MachinePeak peak = measure_machine_peak(static_cast<int>(options.threads));
  const int threads = peak.compute.back().threads;
  const ModelRoof roof = model_roof(summary, peak, threads);
  rows.emplace_back("at best", fmt::format("{} of multiply-adds at {:.1f} GFLOP/s, {} for weights, inputs and outputs",
                                           human_ms(roof.compute_ms), peak.gflops(threads), human_ms(roof.memory_ms)));
  return Json::object({{"threads", threads},
                       {"compute_ms", roof.compute_ms},
                       {"memory_ms", roof.memory_ms},
                       {"bound_ms", roof.bound_ms()},
                       {"gflops", peak.gflops(threads)},
                       {"peak", peak_json(peak)}});
}

// "-3 add, +1 layer_norm".
std::string changes_text(const PassReport& pass) {
  std::vector<std::string> parts;
  for (const auto& [op, change] : pass.ops) parts.push_back(fmt::format("{:+} {}", change, op));
  return join(parts, ", ");
}

Json pass_json(const PassReport& pass) {
  Json ops = Json::object();
  for (const auto& [op, change] : pass.ops) ops.add(op, change);
  return Json::object({{"name", pass.name},
                       {"ms", pass.ms},
                       {"changed", pass.changed},
                       {"nodes", pass.nodes},
                       {"ops", std::move(ops)}});
}

// What compiling the graph does to it, and a table of the passes that changed it; nothing when it was not asked for.
Json passes_json(const Session& session, const Options& options, const Graph& graph, std::string& text) {
  if (!options.passes) return {};
  CompileOptions how;
  how.threads = static_cast<int>(options.threads);
  const CompileReport report = compile(graph, how).compile_report();
  Json passes = Json::array();
  Table table({{"pass"}, {"nodes", true}, {"ms", true}, {"what came and went"}});
  double ms = 0;
  size_t idle = 0;
  for (const PassReport& pass : report.passes) {
    passes.push(pass_json(pass));
    ms += pass.ms;
    idle += pass.changed ? 0 : 1;
    if (pass.changed) {
      table.add({pass.name, fmt::format("{}", pass.nodes), fmt::format("{:.2f}", pass.ms), changes_text(pass)});
    }
  }
  text = fmt::format("\n{}{} passes in {:.2f} ms, of which {} found nothing to do; the plan took {:.2f} ms\n",
                     table.to_string(session.stdout_escapes()), report.passes.size(), ms, idle, report.plan_ms);
  return Json::object({{"passes", std::move(passes)}, {"passes_ms", ms}, {"plan_ms", report.plan_ms}});
}

int run(Session& session, const Options& options) {
  checked_threads(options.threads);
  const LoadedModel loaded = load_model(session, options.model);
  const Graph bound = options.model.batch != kNoBatch || !options.model.dims.empty()
                          ? bind_inputs(loaded.model.graph, loaded.seeds)
                          : Graph();
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
  Json optional_inputs = Json::array();
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name();
    const bool has_value = loaded.model.input_defaults.contains(name);
    rows.emplace_back("input", name + " " + to_string(graph.type(id)) + (has_value ? " (has a value)" : ""));
    if (has_value) optional_inputs.push(value_json(name, graph.type(id)));
  }
  for (const auto& [name, type] : loaded.model.optional_inputs) {
    rows.emplace_back("or input", name + " " + to_string(type) + " (has a value)");
    optional_inputs.push(value_json(name, type));
  }
  for (const ValueId id : graph.states())
    rows.emplace_back("state", graph.value(id).name() + " " + to_string(graph.type(id)));
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    rows.emplace_back("output", graph.output_name(i) + " " + to_string(graph.type(graph.outputs()[i])));
  }
  Json roofline = roofline_json(options, summary, rows);
  std::string passes_text;
  Json compiled = passes_json(session, options, graph, passes_text);
  session.print({{"model", loaded.name},
                 {"opset", opset == loaded.model.opsets.end() ? Json() : Json(opset->second)},
                 {"opsets", std::move(opsets)},
                 {"producer", loaded.model.producer},
                 {"nodes", summary.nodes},
                 {"ops", std::move(ops)},
                 {"inputs", inputs_json(graph)},
                 {"optional_inputs", std::move(optional_inputs)},
                 {"states", states_json(graph)},
                 {"outputs", outputs_json(graph)},
                 {"parameters", summary.parameters},
                 {"parameter_bytes", summary.parameter_bytes},
                 {"flops", summary.flops},
                 {"bytes_moved", summary.bytes},
                 {"nodes_without_cost", summary.nodes_without_cost},
                 {"width", extent.width},
                 {"depth", extent.depth},
                 {"roofline", std::move(roofline)},
                 {"compiled", std::move(compiled)}},
                pairs_to_string(rows) + "\n" + op_table.to_string(session.stdout_escapes()) + passes_text);
  return 0;
}

}  // namespace

Command info_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "--roofline",
                   .doc = "Measure the machine and tell the time that no f32 run of the model can beat.",
                   .target = &options->roofline});
  table.push_back({.names = "--passes",
                   .doc = "Compile the model for the cpu and tell what each pass did to it, and how long it took.",
                   .target = &options->passes});
  table.push_back({.names = "--threads",
                   .value_name = "N",
                   .doc = "Threads for --roofline and --passes; 0: all that this process may use.",
                   .target = &options->threads,
                   .env = "AUTOGRAPH_NUM_THREADS"});
  return {
      .name = "info",
      .doc = "what is in a model: ops, inputs, outputs, parameters, work",
      .details =
          "Width is the largest number of ops of which none depends on another (exact up to 20,000 ops), depth the "
          "number of ops on the longest path. Work is counted for the extents that --batch and --dim give to symbols. "
          "--roofline takes about half a second more; it counts every product, so that Winograd's convolutions may "
          "beat it.",
      .examples = {{"autograph info model.onnx", "A table."},
                   {"autograph info zoo:resnet50?batch=8 --json", "The same facts as JSON."},
                   {"autograph info model.onnx --roofline", "And how fast it could run on this machine."},
                   {"autograph info model.onnx --passes", "And what the passes make of it."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

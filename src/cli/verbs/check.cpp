// `autograph check MODEL`: is it right? Runs the model as compiled and compares with stored outputs or with the
// reference backend.
#include <fmt/core.h>

#include <filesystem>
#include <map>

#include "autograph/compare_values.h"
#include "autograph/devices.h"
#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "autograph/truth.h"
#include "base/check.h"
#include "base/join.h"
#include "cli/check_gradients.h"
#include "cli/execute.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/table.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  std::string data;
  Tolerance tolerance;
  GradientFlags gradients;
  bool strict = false;
};

// input_0.pb, input_1.pb, ... of the ONNX test data layout, one for each type.
std::vector<Datum> read_values(const std::string& folder, const std::string& stem, const std::vector<Type>& types) {
  std::vector<Datum> values;
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string path = fmt::format("{}/{}_{}.pb", folder, stem, i);
    std::error_code code;
    AG_CHECK_USER(std::filesystem::exists(path, code), FormatError,
                  "[check] data: expected {} files {}_N.pb in '{}', {} is missing", types.size(), stem, folder, path);
    values.push_back(read_onnx_value(path, types[i]));
  }
  return values;
}

std::vector<Type> input_types(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId id : graph.inputs()) types.push_back(graph.type(id));
  return types;
}

std::vector<Type> output_types(const Graph& graph) {
  std::vector<Type> types;
  for (const ValueId id : graph.outputs()) types.push_back(graph.type(id));
  return types;
}

Json missing_json(const std::vector<MissingOp>& missing) {
  Json list = Json::array();
  for (const MissingOp& op : missing) {
    list.push(Json::object({{"op", op.op}, {"opset", op.opset}, {"count", op.count}, {"why", op.reason}}));
  }
  return list;
}

std::string missing_text(const std::vector<MissingOp>& missing) {
  if (missing.empty()) return "";
  Table table({{"unsupported op"}, {"opset", true}, {"count", true}, {"why"}});
  for (const MissingOp& op : missing)
    table.add({op.op, fmt::format("{}", op.opset), fmt::format("{}", op.count), op.reason});
  return "\n" + table.to_string(false);
}

// With --strict: ops of the plan that no kernel of the device took, counted by op and reason.
std::vector<MissingOp> fallbacks(const Executable& executable, const Options& options, int opset) {
  std::vector<MissingOp> list;
  if (!options.strict || get_device(options.run.device).properties().is_reference) return list;
  std::map<std::pair<std::string, std::string>, int64_t> counts;
  for (const KernelChoice& choice : executable.kernel_choices()) {
    if (choice.kernel != "reference") continue;
    const std::string why = choice.refusals.empty() ? "no kernel for this op" : join(choice.refusals, "; ");
    ++counts[{choice.op, why}];
  }
  for (const auto& [key, count] : counts) {
    list.push_back({.op = key.first, .opset = opset, .count = count, .reason = options.run.device + ": " + key.second});
  }
  return list;
}

Truth find_truth(Session& session, const Graph& graph, const RunOptions& run, const std::vector<Datum>& inputs) {
  if (draws_random_numbers(graph)) session.warn("the model draws random numbers: two runs need not agree");
  session.progress("running the reference", -1);
  Truth truth = Truth::of(graph, inputs, compile_options(run));
  session.end_progress();
  return truth;
}

int report(Session& session, const LoadedModel& loaded, const std::vector<Difference>& differences,
           const std::string& compared_with, const std::vector<MissingOp>& unsupported) {
  const Graph& graph = loaded.model.graph;
  bool ok = true;
  Json outputs = Json::array();
  Table table({{"output"}, {"max abs", true}, {"max rel", true}, {"wrong", true}, {"first difference"}});
  for (size_t i = 0; i < differences.size(); ++i) {
    const Difference& difference = differences[i];
    ok = ok && difference.ok;
    outputs.push(Json::object({{"name", graph.output_name(i)},
                               {"max_abs", difference.max_abs},
                               {"max_rel", difference.max_rel},
                               {"ok", difference.ok},
                               {"wrong", difference.num_bad},
                               {"why", difference.why}}));
    table.add({graph.output_name(i), fmt::format("{:.3g}", difference.max_abs),
               fmt::format("{:.3g}", difference.max_rel), fmt::format("{}", difference.num_bad), difference.why});
  }
  const bool complete = unsupported.empty();
  session.print({{"ok", ok && complete},
                 {"model", loaded.name},
                 {"compared_with", compared_with},
                 {"outputs", std::move(outputs)},
                 {"unsupported", missing_json(unsupported)}},
                table.to_string(session.stdout_escapes()) + missing_text(unsupported) +
                    (ok ? "\nnumbers agree\n" : "\nNUMBERS DIFFER\n"));
  return static_cast<int>(!ok ? ExitCode::mismatch : complete ? ExitCode::done : ExitCode::unsupported);
}

int compare(Session& session, const Options& options, LoadedModel loaded) {
  const Graph& graph = loaded.model.graph;
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const bool stored = !options.data.empty();
  if (stored) {
    loaded.inputs = read_values(options.data, "input", input_types(graph));
  } else {
    given_inputs(session, loaded, options.model);
  }
  if (options.gradients.check) return check_gradients(session, loaded, options.run, options.gradients);
  const std::vector<Datum>& inputs = loaded.inputs;
  std::vector<Datum> expected;
  if (stored) expected = read_values(options.data, "output", output_types(graph));
  LoadedModel compiling = loaded;
  const CompiledModel compiled =
      compile_model(session, compiling, options.run, {.revalidation = Revalidation::numbers});
  const Executable& executable = compiled.executable;
  const Outputs actual = executable.run(inputs);
  log_plan(session, executable);
  const RunOptions run = with_plan(session, loaded, options.run);
  std::string compared_with = options.data;
  std::vector<Difference> differences;
  if (stored) {
    const Tolerance tolerance = tolerance_for(graph, run, options.tolerance);
    for (size_t i = 0; i < actual.size(); ++i) differences.push_back(compare_values(actual[i], expected[i], tolerance));
  } else {
    const Truth truth = find_truth(session, graph, run, inputs);
    differences = truth.compare(actual, {options.tolerance.rtol, options.tolerance.atol, -1});
    compared_with = truth.how();
    if (!truth.is_whole()) session.warn("compared with " + compared_with);
    if (!truth.fault().empty()) session.warn("a node by itself is wrong: " + truth.fault());
  }
  const auto opset = loaded.model.opsets.find("");
  const auto unsupported = fallbacks(executable, options, opset == loaded.model.opsets.end() ? 0 : opset->second);
  return report(session, loaded, differences, compared_with, unsupported);
}

int run(Session& session, const Options& options) {
  check_tolerance(options.tolerance);
  AG_CHECK_USER(options.data.empty() || !options.gradients.check, UserError,
                "[cli] gradients: stored outputs have none, leave out --data or --gradients");
  refuse_without_gradients(options.gradients);
  if (!options.data.empty()) {
    std::error_code code;
    AG_CHECK_USER(std::filesystem::is_directory(options.data, code), IoError, "[check] data: no folder '{}'",
                  options.data);
  }
  LoadedModel loaded;
  try {
    loaded = load_model(session, options.model);
  } catch (const UnsupportedError& error) {
    const bool is_onnx = is_model_file(options.model.model) && !options.model.model.ends_with(".agplan");
    const std::vector<MissingOp> missing = is_onnx ? find_missing_ops(options.model.model) : std::vector<MissingOp>();
    if (missing.empty()) throw;
    session.error(error.what());
    session.print({{"ok", false},
                   {"model", options.model.model},
                   {"outputs", Json::array()},
                   {"unsupported", missing_json(missing)}},
                  missing_text(missing));
    return static_cast<int>(ExitCode::unsupported);
  }
  return compare(session, options, std::move(loaded));
}

}  // namespace

Command check_command() {
  auto options = std::make_shared<Options>();
  std::vector<Option> table = model_option_table(options->model);
  table.push_back({.names = "--data",
                   .value_name = "DIR",
                   .doc = "Folder with input_N.pb and output_N.pb, as in the ONNX test suites.",
                   .target = &options->data,
                   .kind = ValueKind::directory});
  table.push_back(input_option(options->model));
  table.push_back({.names = "--rtol",
                   .value_name = "R",
                   .doc = "Allowed difference relative to the expected element; 1e-3 when not given.",
                   .target = &options->tolerance.rtol});
  table.push_back({.names = "--atol",
                   .value_name = "A",
                   .doc = "Allowed absolute difference; when not given each element has its own, see below.",
                   .target = &options->tolerance.atol});
  table.push_back({.names = "--strict",
                   .doc = "Also fail (exit 4) for ops that no kernel of the device takes, and list them.",
                   .target = &options->strict});
  for (Option& option : gradient_option_table(options->gradients)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "check",
      .doc = "is a model right: compares with stored outputs or the reference",
      .details =
          "Without --data the model runs on inputs drawn from the seed, and once more, as it stands, by the slow "
          "reference. An element is wrong where |actual - expected| > atol + rtol * |expected|. atol is a share of the "
          "terms that the element was made of, followed through the model: 1e-4, 2^-6 with --precision bf16, more for "
          "models in f16 and bf16; where a step (rounding, a comparison) is that near, it may go the other way. With "
          "--data it is 1e-4 of the output's largest magnitude, more for bf16 and quantized models. max rel is the "
          "largest difference divided by the output's largest magnitude. With --gradients each input and weight moves "
          "along a drawn direction, and what the loss changes by, in f64 and by the reference, is compared with the "
          "gradient (rule error, as a share of the terms of the sum); the compiled gradients are compared with the "
          "reference as outputs are (kernel error). A group at a kink that is not told apart in the time is no error. "
          "Exit code 6 where numbers differ.",
      .examples = {{"autograph check model.onnx", "Against the reference backend."},
                   {"autograph check model.onnx --data test_data_set_0", "Against stored outputs."},
                   {"autograph check model.onnx --gradients --wrt '*weight'", "Gradients of weights."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

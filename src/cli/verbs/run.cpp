// `autograph run MODEL`: one run, its outputs as statistics and as .npy files.
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iostream>
#include <optional>

#include "autograph/error.h"
#include "autograph/statistics.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/printable.h"
#include "cli/execute.h"
#include "cli/observed_run.h"
#include "cli/sources/given_inputs.h"
#include "cli/verbs.h"
#include "report/table.h"
#include "report/type_json.h"

namespace autograph::cli {
namespace {

struct Options {
  ModelOptions model;
  RunOptions run;
  ObserveOptions observe;
  std::string output_dir;
};

// A file name made of an output's name: letters, digits and a few signs stay, all else becomes '_'.
std::string file_name(const std::string& name, size_t index) {
  std::string result = fmt::format("{}_", index);
  for (const char c : name.substr(0, 100)) {
    const bool stays = std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '_';
    result += stays ? c : '_';
  }
  return name.empty() ? fmt::format("output_{}.npy", index) : result + ".npy";
}

// One row for a tensor; the elements of a sequence get rows of their own.
class OutputReport {
 public:
  explicit OutputReport(const std::string& directory) : directory_(directory) {}

  void add(const std::string& name, const Datum& value) {
    if (value.is_sequence()) {
      const auto& elements = value.sequence();
      for (size_t i = 0; i < elements.size(); ++i) add(fmt::format("{}.{}", name, i), elements[i]);
    } else if (value.is_tensor()) {
      add_tensor(name, value.tensor());
    } else {
      list_.push(value_json(name, Type()));
      table_.add({name, "none"});
    }
  }

  Json list() { return std::move(list_); }
  const Table& table() const { return table_; }
  /// A line for each output that holds NaN.
  std::string nan_note() const {
    return nan_note_.empty() ? "" : nan_note_ + "--check-nan says where the first is made\n";
  }

 private:
  void add_tensor(const std::string& name, const Tensor& tensor) {
    std::string file;
    if (!directory_.empty()) {
      file = directory_ + "/" + file_name(name, index_);
      write_npy(file, tensor);
    }
    ++index_;
    const auto all = statistics_of(tensor.view());
    const Statistics* stats = all && all->has_numbers() ? &*all : nullptr;
    Json json = value_json(name, tensor.type());
    const auto number = [&](double Statistics::*field) { return stats ? Json(stats->*field) : Json(); };
    json.add("min", number(&Statistics::min))
        .add("max", number(&Statistics::max))
        .add("mean", number(&Statistics::mean))
        .add("nan", all ? Json(all->num_nan) : Json())
        .add("infinite", all ? Json(all->num_infinite) : Json());
    list_.push(std::move(json.add("file", file.empty() ? Json() : Json(file))));
    const auto text = [&](double Statistics::*field) { return stats ? fmt::format("{:.6g}", stats->*field) : ""; };
    table_.add({name, to_string(tensor.type()), text(&Statistics::min), text(&Statistics::max), text(&Statistics::mean),
                file});
    if (all && all->num_nan > 0) {
      nan_note_ += fmt::format("{}: {} of {} elements are NaN\n", printable(name), all->num_nan, all->count);
    }
  }

  std::string directory_;
  size_t index_ = 0;
  std::string nan_note_;
  Json list_ = Json::array();
  Table table_{{{"output"}, {"type"}, {"min", true}, {"max", true}, {"mean", true}, {"file"}}};
};

int run(Session& session, const Options& options) {
  check_observe_options(options.observe);
  if (!options.output_dir.empty()) require_writable_directory(options.output_dir);
  LoadedModel loaded = load_model(session, options.model);
  loaded.seeds.seed = static_cast<uint64_t>(options.run.seed);
  const std::vector<Datum>& inputs = given_inputs(session, loaded, options.model);
  std::vector<std::string> names, input_names;
  for (const ValueId id : loaded.model.graph.inputs()) input_names.push_back(loaded.model.graph.value(id).name());
  for (size_t i = 0; i < loaded.model.graph.outputs().size(); ++i) names.push_back(loaded.model.graph.output_name(i));
  std::vector<std::string> watchable = watchable_names(loaded.model.graph);
  RunOptions run_options = options.run;
  run_options.keeps_weights = options.observe.is_any();
  const CompiledModel compiled = compile_model(session, loaded, run_options, {.revalidation = Revalidation::numbers});
  const Executable& executable = compiled.executable;
  ObservedRun observed(session, options.observe, std::move(watchable));
  if (RunHasher* hasher = observed.hasher()) {
    observed.describe(loaded.name, compiled.device, executable.threads());
    for (size_t i = 0; i < inputs.size(); ++i) hasher->add_input(input_names[i], inputs[i]);
  }
  const Stopwatch watch;
  Outputs outputs;
  try {
    outputs = executable.run(inputs);
  } catch (const UserError&) {
    if (!observed.was_stopped()) throw;
    std::cerr << "stopped\n";
    return static_cast<int>(ExitCode::done);
  }
  const double latency_ms = watch.ms();
  observed.finish();
  log_plan(session, executable);
  OutputReport report(options.output_dir);
  for (size_t i = 0; i < outputs.size(); ++i) report.add(names[i], outputs[i]);
  Json::Object document{{"model", loaded.name}, {"outputs", report.list()}, {"latency_ms", latency_ms}};
  if (!options.observe.watch.empty()) document.emplace_back("watched", observed.watched());
  session.print(std::move(document), report.table().to_string(session.stdout_escapes()) + report.nan_note() +
                                         "\nfirst run took " + human_ms(latency_ms) + "\n");
  return 0;
}

}  // namespace

Command run_command() {
  auto options = std::make_shared<Options>();
  options->observe.advice = ", and with --no-optimize all of them run";
  std::vector<Option> table = model_option_table(options->model);
  table.push_back(input_option(options->model));
  table.push_back({.names = "--output-dir",
                   .value_name = "DIR",
                   .doc = "Folder for the outputs as .npy files; made when missing.",
                   .target = &options->output_dir,
                   .kind = ValueKind::directory});
  for (Option& option : observe_option_table(options->observe)) table.push_back(std::move(option));
  for (Option& option : run_option_table(options->run)) table.push_back(std::move(option));
  return {
      .name = "run",
      .doc = "run a model once",
      .details =
          "Inputs that are not given are drawn from the seed: floats are normal, integers that index a table are "
          "below its extent, other integers are 0 or 1, masks are 1.",
      .examples = {{"autograph run model.onnx --input x=x.npy --output-dir out",
                    "One input from a file, outputs into out/."},
                   {"autograph run zoo:bert --seed 7", "Drawn inputs."},
                   {"autograph run model.onnx --watch 'layer1.*,softmax'", "What do these nodes read and make?"},
                   {"autograph run model.onnx --hashes here.jsonl", "For diff-runs with a run elsewhere."}},
      .options = std::move(table),
      .run = [options](Session& session) { return run(session, *options); },
  };
}

}  // namespace autograph::cli

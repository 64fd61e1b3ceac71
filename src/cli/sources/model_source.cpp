#include "cli/sources/model_source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "autograph/error.h"
#include "autograph/op_def.h"
#include "autograph/zoo.h"
#include "base/check.h"
#include "base/printable.h"
#include "base/rethrow.h"
#include "base/stopwatch.h"
#include "base/text/read_number.h"
#include "cli/options/names.h"

namespace autograph::cli {
namespace {

constexpr std::string_view kZoo = "zoo:";

int64_t parse_integer(std::string_view text, std::string_view what) {
  const auto number = read_number<int64_t>(text);
  AG_CHECK_USER(number, UserError, "[cli] {}: expected a whole number, got '{}'", what, text);
  return *number;
}

SeedOptions seed_options(const ModelOptions& options) {
  SeedOptions seeds;
  if (options.batch != kNoBatch) {
    AG_CHECK_USER(options.batch >= 1, UserError, "[cli] batch: expected 1 or more, got {}", options.batch);
    seeds.batch = options.batch;
  }
  for (const std::string& dim : options.dims) {
    const size_t equals = dim.rfind('=');
    AG_CHECK_USER(equals != std::string::npos && equals > 0, UserError, "[cli] dim: expected NAME=N, got '{}'", dim);
    const int64_t extent = parse_integer(std::string_view(dim).substr(equals + 1), "dim");
    const auto [given, is_new] = seeds.dims.emplace(dim.substr(0, equals), extent);
    AG_CHECK_USER(is_new || given->second == extent, UserError, "[cli] dim: '{}' is given twice, as {} and as {}",
                  given->first, given->second, extent);
  }
  return seeds;
}

// "models/" -> " (did you mean 'models/a.onnx'?)", of the one model that is in the folder.
std::string model_in(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (std::filesystem::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
    const std::string path = it->path().string();
    if (path.ends_with(".onnx") || path.ends_with(".agplan")) found.push_back(path);
  }
  return found.size() == 1 ? fmt::format(" (did you mean '{}'?)", printable(found.front())) : "";
}

// Throws unless it is something that can be opened.
void require_model_file(const std::string& path) {
  std::error_code code;
  AG_CHECK_USER(!std::filesystem::is_directory(path, code), IoError,
                "[cli] model: expected a file, got the folder '{}'{}", path, model_in(path));
  if (std::filesystem::exists(path, code)) return;
  AG_CHECK_USER(!code, IoError, "[cli] model: cannot open '{}' ({})", path, code.message());
  for (const std::string& name : names_of(ValueKind::zoo_model)) {
    AG_CHECK_USER(name != path, IoError, "[cli] model: no file '{0}' (did you mean 'zoo:{0}'?)", name);
  }
  throw IoError(fmt::format("[cli] model: no file '{}'", path));
}

// "NAME" or "NAME?batch=N".
Model build_zoo(std::string_view text, SeedOptions& seeds) {
  const std::string_view name = text.substr(0, text.find('?'));
  std::string_view query = text.substr(std::min(name.size() + 1, text.size()));
  int64_t batch = seeds.batch.value_or(1);
  if (name.size() < text.size()) {
    constexpr std::string_view kBatch = "batch=";
    AG_CHECK_USER(query.starts_with(kBatch), UserError, "[cli] model: expected zoo:NAME?batch=N, got 'zoo:{}'", text);
    batch = parse_integer(query.substr(kBatch.size()), "batch");
    AG_CHECK_USER(batch == seeds.batch.value_or(batch), UserError,
                  "[cli] batch: expected one number, got 'zoo:{}' and --batch {}", text, *seeds.batch);
  }
  AG_CHECK_USER(batch >= 1, UserError, "[cli] batch: expected 1 or more, got {}", batch);
  seeds.batch.reset();  // the model has it now
  Model model;
  model.graph = build_zoo_model(name, batch);
  model.opsets[""] = SaveOptions().opset;
  model.producer = "autograph";
  return model;
}

bool is_given(const ModelOptions& options, const std::string& input) {
  return std::any_of(options.inputs.begin(), options.inputs.end(),
                     [&](const std::string& given) { return given.starts_with(input + "="); });
}

// An extent that --dim gives must be that of the value that the file has for an input. A value of extent 1 stands for
// any.
void check_value(const std::string& input, const Type& type, const Tensor& value, const SeedOptions& seeds) {
  if (!type.is_tensor() || !type.shape().has_rank() || type.shape().rank() != value.rank()) return;
  for (int64_t axis = 0; axis < value.rank(); ++axis) {
    const int64_t extent = value.dims()[static_cast<size_t>(axis)];
    for (const std::string& name : {std::string(type.shape()[axis].name()), fmt::format("{}[{}]", input, axis)}) {
      const auto said = seeds.dims.find(name);
      AG_CHECK_USER(said == seeds.dims.end() || said->second == extent || extent == 1, UserError,
                    "[cli] dim: '{0}' is {1}, but the value that the file has for input '{2}' has {3} there (--input "
                    "{2}=FILE.npy "
                    "gives another)",
                    printable(name), said->second, printable(input), extent);
    }
  }
}

// Of all inputs that have values and are not given.
void check_values(const LoadedModel& loaded, const ModelOptions& options) {
  const Graph& graph = loaded.model.graph;
  std::map<std::string, Tensor> constants;
  for (const ValueId id : graph.constants()) constants.emplace(graph.value(id).name(), graph.value(id).constant());
  for (const auto& [name, type] : loaded.model.optional_inputs) {
    const auto value = constants.find(name);
    if (value != constants.end()) check_value(name, type, value->second, loaded.seeds);
  }
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name();
    const auto value = loaded.seeds.values.find(name);
    if (value == loaded.seeds.values.end() || is_given(options, name)) continue;
    check_value(name, graph.type(id), value->second, loaded.seeds);
  }
}

}  // namespace

std::vector<Option> model_option_table(ModelOptions& options) {
  return {
      {.names = "MODEL",
       .doc = "A path to an .onnx file or a saved plan (.agplan), or zoo:NAME, with ?batch=N behind a zoo name.",
       .target = &options.model,
       .kind = ValueKind::model,
       .required = true},
      {.names = "--map-weights",
       .doc = "Map large weights from the .onnx file and its data instead of reading them, so that processes share "
              "them. Whoever truncates such a file kills the process.",
       .target = &options.map_weights},
      {.names = "--allow-hard-links",
       .doc = "Read weights also from files that have several names, as some installers make them.",
       .target = &options.allow_hard_links},
      {.names = "--channel-block",
       .value_name = "N",
       .doc = "Channels of a block, 8 or 16, in files that ONNX Runtime optimised for its own kernels and that do not "
              "say: 16 where that processor has AVX-512.",
       .target = &options.channel_block},
      {.names = "--batch",
       .value_name = "N",
       .doc = "Number for symbolic batch extents; 1 when not given.",
       .target = &options.batch},
      {.names = "--dim",
       .value_name = "NAME=N",
       .doc = "Number for a symbolic extent, or for the one at a place: x[2]=48. Lengths are 8, sides of pictures 224, "
              "sound 16000 and others 1 when not given. May be repeated.",
       .target = &options.dims},
  };
}

bool is_model_file(const std::string& model) { return !model.starts_with(kZoo); }

void refuse_plan(const LoadedModel& loaded, std::string_view verb) {
  AG_CHECK_USER(!loaded.plan, UserError, "[cli] model: {} needs a model, got the saved plan '{}' (it was made of {})",
                verb, loaded.name, printable(loaded.plan->origin.model));
}

Graph bound_graph(const LoadedModel& loaded) {
  return loaded.inputs.empty() ? bind_inputs(loaded.model.graph, loaded.seeds)
                               : bind_inputs(loaded.model.graph, loaded.inputs);
}

void bind_extents(LoadedModel& loaded) {
  loaded.model.graph = bound_graph(loaded);
  loaded.seeds.dims.clear();
  loaded.seeds.batch.reset();
}

bool draws_random_numbers(const Graph& graph) {
  for (const NodeId id : graph.nodes()) {
    if (graph.node(id).op().traits.random) return true;
  }
  return false;
}

LoadedModel load_model(const Session& session, const ModelOptions& options) {
  const Stopwatch watch;
  LoadedModel loaded;
  loaded.name = options.model;
  loaded.seeds = seed_options(options);
  AG_CHECK_USER(!options.map_weights || options.model.ends_with(".onnx"), UserError,
                "[cli] --map-weights: expected an .onnx file, got '{}'", options.model);
  if (!is_model_file(options.model)) {
    loaded.model = build_zoo(std::string_view(options.model).substr(kZoo.size()), loaded.seeds);
  } else {
    require_model_file(options.model);
    if (options.model.ends_with(".agplan")) {
      auto plan = std::make_shared<SavedPlan>(load_plan(options.model));
      loaded.model.graph = plan->optimized.graph;
      loaded.model.producer = "autograph " + plan->origin.version;
      loaded.model.input_defaults = plan->input_defaults;
      loaded.plan = std::move(plan);
    } else {
      LoadOptions how{.allow_hard_links = options.allow_hard_links,
                      .map_weights = options.map_weights,
                      .channel_block = options.channel_block};
      for (const std::string& input : options.inputs) {
        if (const size_t equals = input.find('='); equals != std::string::npos) {
          how.given_inputs.push_back(input.substr(0, equals));
        }
      }
      loaded.model = load_onnx(options.model, how);
    }
  }
  loaded.seeds.values = loaded.model.input_defaults;
  if (!loaded.seeds.dims.empty()) check_values(loaded, options);
  for (const std::string& warning : loaded.model.warnings) session.warn(warning);
  session.log("load",
              fmt::format("{}: {} nodes in {:.1f} ms", loaded.name, loaded.model.graph.num_nodes(), watch.ms()));
  return loaded;
}

LoadedModel load_one_of(const Session& session, const ModelOptions& options) {
  try {
    return load_model(session, options);
  } catch (const Error& error) {
    const bool is_named = error.exit_code() != ExitCode::malformed && error.exit_code() != ExitCode::unsupported;
    if (is_named) throw;
    rethrow_changed(
        [&](const std::string& message) { return fmt::format("{} (in '{}')", message, printable(options.model)); });
  }
}

}  // namespace autograph::cli

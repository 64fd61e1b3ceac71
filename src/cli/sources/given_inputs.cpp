#include "cli/sources/given_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "autograph/builder.h"
#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"
#include "base/printable.h"
#include "base/rethrow.h"
#include "base/text/read_number.h"

namespace autograph::cli {
namespace {

struct Given {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> numbers;  // as they were typed
};

// Of an archive the array that has the input's name, or the only one that is in it.
Tensor read_array(const std::string& path, const std::string& input) {
  if (!path.ends_with(".npz")) return read_npy(path);
  NamedTensors arrays = read_npz(path);
  std::vector<std::string> names;
  for (auto& [name, tensor] : arrays) {
    if (name == input || arrays.size() == 1) return std::move(tensor);
    names.push_back(printable(name));
  }
  throw UserError(
      fmt::format("[cli] input: expected an array of its name, got {}", names.empty() ? "none" : join(names, ", ")));
}

// Says of which input a broken file is.
Tensor read_input(const std::string& path, const std::string& input) {
  try {
    return read_array(path, input);
  } catch (const IoError&) {
    throw;  // which names the file
  } catch (...) {
    rethrow_changed([&](const std::string& message) {
      return fmt::format("{} (input '{}' from '{}')", message, printable(input), path);
    });
  }
}

bool is_number(std::string_view text) { return text == "true" || text == "false" || read_number<double>(text); }

Given read_inputs(const std::vector<std::string>& given, const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs()) names.push_back(graph.value(id).name());
  Given result;
  std::set<std::string> seen;
  for (const std::string& item : given) {
    const size_t equals = item.find('=');
    AG_CHECK_USER(equals != std::string::npos, UserError,
                  "[cli] input: expected NAME=FILE.npy, NAME=FILE.npz or NAME=NUMBER, got '{}'", item);
    const std::string name = item.substr(0, equals), what = item.substr(equals + 1);
    AG_CHECK_USER(std::find(names.begin(), names.end(), name) != names.end(), UserError,
                  "[cli] input: the model has none named '{}'{}", printable(name), nearest_or_all(name, names));
    AG_CHECK_USER(seen.insert(name).second, UserError, "[cli] input: '{}' is given twice", printable(name));
    if (is_number(what)) {
      result.numbers[name] = what;
    } else {
      result.tensors[name] = read_input(what, name);
    }
  }
  return result;
}

// One element, by the conversion that numbers beside values have.
Tensor element_of(DType dtype, const std::string& text) {
  GraphBuilder graph;
  const Var like = graph.input("like", dtype, {});
  const auto integer =
      text == "true" || text == "false" ? std::optional<int64_t>(text == "true" ? 1 : 0) : read_number<int64_t>(text);
  const Var element = scalar_like(like, integer ? Number(*integer) : Number(*read_number<double>(text)));
  return element.graph().value(element.id()).constant();
}

// `text` in all elements of input `index`.
Datum filled_input(const Graph& graph, size_t index, const std::string& text, const SeedOptions& seeds) {
  const Type type = bound_input_type(graph, index, seeds);
  try {
    const Tensor element = element_of(type.dtype(), text);
    Tensor tensor = Tensor::zeros(type.dtype(), type.shape().static_dims());
    const size_t bytes = element_size(type.dtype());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      std::memcpy(static_cast<char*>(tensor.mutable_raw()) + static_cast<size_t>(i) * bytes, element.raw(), bytes);
    }
    return tensor;
  } catch (const UserError&) {
    throw UserError(fmt::format("[cli] input '{}': expected an element of {}, or a FILE.npy, got '{}'",
                                printable(graph.value(graph.inputs()[index]).name()), printable(to_string(type)),
                                text));
  }
}

std::string place_of(const std::string& input, size_t axis) { return fmt::format("{}[{}]", input, axis); }

// Extents of a name that --dim says by place, or that what is given or in the file has, are those of all of that name.
void bind_names(const Graph& graph, const Given& given, SeedOptions& seeds) {
  for (const ValueId id : graph.inputs()) {
    const std::string& input = graph.value(id).name();
    const std::vector<Dim>& dims = graph.type(id).shape().dims();
    const auto tensor = given.tensors.find(input);
    const auto value = given.numbers.contains(input) ? seeds.values.end() : seeds.values.find(input);
    const Tensor known = tensor != given.tensors.end() ? tensor->second
                         : value != seeds.values.end() ? value->second
                                                       : Tensor();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string name(dims[axis].name());
      const auto place = seeds.dims.find(place_of(input, axis));
      if (name.empty()) continue;
      if (place != seeds.dims.end()) seeds.dims.emplace(name, place->second);
      if (known.is_present() && known.dims().size() == dims.size()) seeds.dims.emplace(name, known.dims()[axis]);
    }
  }
}

// A number fills the extents that others have, and only where nobody says what they are those of the file's value.
void fill_extents_of_file(const Graph& graph, const Given& given, SeedOptions& seeds) {
  for (const ValueId id : graph.inputs()) {
    const std::string& input = graph.value(id).name();
    if (!given.numbers.contains(input) || !seeds.values.contains(input)) continue;
    const Dims extents = seeds.values.extract(input).mapped().dims();
    const std::vector<Dim>& dims = graph.type(id).shape().dims();
    for (size_t axis = 0; axis < dims.size() && dims.size() == extents.size(); ++axis) {
      const bool is_said =
          dims[axis].is_known() || (axis == 0 && seeds.batch) || seeds.dims.contains(place_of(input, axis));
      const std::string name(dims[axis].name());
      if (!is_said) seeds.dims.emplace(name.empty() ? place_of(input, axis) : name, extents[axis]);
    }
  }
}

// Draws what is not given; extents that a given input binds hold for the drawn ones too.
std::vector<Datum> gather_inputs(const LoadedModel& loaded, const Given& given) {
  const Graph& graph = loaded.model.graph;
  SeedOptions seeds = loaded.seeds;
  for (const auto& [name, tensor] : given.tensors) seeds.values.erase(name);
  bind_names(graph, given, seeds);
  fill_extents_of_file(graph, given, seeds);
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.value(graph.inputs()[i]).name();
    const auto tensor = given.tensors.find(name);
    const auto number = given.numbers.find(name);
    if (tensor != given.tensors.end()) {
      inputs.emplace_back(tensor->second);
    } else {
      inputs.push_back(number != given.numbers.end() ? filled_input(graph, i, number->second, seeds)
                                                     : seeded_input(graph, i, seeds));
    }
  }
  return inputs;
}

// "x[1]=1" and "sequence=8": what was drawn without a number from anybody.
std::vector<std::string> guessed_extents(const LoadedModel& loaded, const Given& given) {
  std::set<std::string> known;
  for (const auto& [name, extent] : loaded.seeds.dims) known.insert(name);
  const Graph& graph = loaded.model.graph;
  for (const ValueId id : graph.inputs()) {
    if (!given.tensors.contains(graph.value(id).name()) || !graph.type(id).is_tensor()) continue;
    for (const Dim& dim : graph.type(id).shape().dims()) known.emplace(dim.name());
  }
  std::vector<std::string> guessed;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    const std::string& name = graph.value(id).name();
    if (given.tensors.contains(name) || !loaded.inputs[i].is_tensor() || !graph.type(id).is_tensor()) continue;
    const std::vector<Dim>& dims = graph.type(id).shape().dims();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string place = place_of(name, axis);
      const std::string what = dims[axis].name().empty() ? place : std::string(dims[axis].name());
      if (dims[axis].is_known() || known.contains(place) || !known.insert(what).second) continue;
      guessed.push_back(fmt::format("{}={}", what, loaded.inputs[i].tensor().dims()[axis]));
    }
  }
  return guessed;
}

// "rate=0": integers by themselves that were drawn; models often choose by them what they do.
std::vector<std::string> guessed_numbers(const LoadedModel& loaded, const Given& given) {
  std::vector<std::string> guessed;
  const Graph& graph = loaded.model.graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.value(graph.inputs()[i]).name();
    const bool is_given = given.tensors.contains(name) || given.numbers.contains(name);
    if (is_given || loaded.seeds.values.contains(name) || !loaded.inputs[i].is_tensor()) continue;
    const Tensor& drawn = loaded.inputs[i].tensor();
    if (!dtypes::kInteger.contains(drawn.dtype()) || drawn.num_elements() != 1) continue;
    guessed.push_back(fmt::format("{}={}", name, drawn.to_i64()[0]));
  }
  return guessed;
}

// Could a run of a graph with such an input have `tensor` for it?
bool takes(const Type& type, const Tensor& tensor) {
  if (!type.is_tensor() || type.dtype() != tensor.dtype()) return false;
  if (!type.shape().has_rank()) return true;
  const std::vector<Dim>& dims = type.shape().dims();
  return std::equal(dims.begin(), dims.end(), tensor.dims().begin(), tensor.dims().end(),
                    [](const Dim& dim, int64_t extent) { return !dim.is_known() || dim.value() == extent; });
}

std::string note_on(const std::vector<std::string>& extents, const std::vector<std::string>& numbers) {
  std::vector<std::string> notes;
  if (!extents.empty()) {
    notes.push_back(fmt::format("extents that were not given: {} (--input NAME=FILE.npy or --dim {}N gives others)",
                                join(extents, " "), extents[0].substr(0, extents[0].rfind('=') + 1)));
  }
  if (!numbers.empty()) {
    notes.push_back(fmt::format("numbers that were not given: {} (--input {}N gives others)", join(numbers, " "),
                                numbers[0].substr(0, numbers[0].rfind('=') + 1)));
  }
  return join(notes, "; ");
}

}  // namespace

Option input_option(ModelOptions& options) {
  return {.names = "--input",
          .value_name = "NAME=FILE.npy|N",
          .doc =
              "An input, of an archive .npz the array of its name, or a number for all of its elements: rate=16000. "
              "Those not given are drawn from the seed, or what the file says where it has a value. May be repeated.",
          .target = &options.inputs,
          .kind = ValueKind::file};
}

const std::vector<Datum>& given_inputs(Session& session, LoadedModel& loaded, const ModelOptions& options) {
  const Given given = read_inputs(options.inputs, loaded.model.graph);
  loaded.inputs = gather_inputs(loaded, given);
  session.note_on_failure(note_on(guessed_extents(loaded, given), guessed_numbers(loaded, given)));
  return loaded.inputs;
}

std::map<std::string, Tensor> kept_defaults(const Session& session, const LoadedModel& loaded, const Graph& graph) {
  std::map<std::string, Tensor> kept;
  for (const ValueId id : graph.inputs()) {
    const std::string& name = graph.value(id).name();
    const auto found = loaded.model.input_defaults.find(name);
    if (found == loaded.model.input_defaults.end()) continue;
    if (takes(graph.type(id), found->second)) {
      kept.insert(*found);
    } else {
      session.warn(fmt::format("input '{}': the file has {} for it, the result takes {}: runs must give it", name,
                               to_string(found->second.type()), to_string(graph.type(id))));
    }
  }
  return kept;
}

}  // namespace autograph::cli

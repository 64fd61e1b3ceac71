#include "cli/sources/given_inputs.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/did_you_mean.h"
#include "base/join.h"

namespace autograph::cli {
namespace {

std::map<std::string, Tensor> read_inputs(const std::vector<std::string>& given, const Graph& graph) {
  std::vector<std::string> names;
  for (const ValueId id : graph.inputs()) names.push_back(graph.value(id).name());
  std::map<std::string, Tensor> tensors;
  for (const std::string& item : given) {
    const size_t equals = item.find('=');
    AG_CHECK_USER(equals != std::string::npos, UserError, "[cli] input: expected NAME=FILE.npy, got '{}'", item);
    const std::string name = item.substr(0, equals);
    AG_CHECK_USER(std::find(names.begin(), names.end(), name) != names.end(), UserError,
                  "[cli] input: the model has none named '{}'{}", name, did_you_mean(name, names));
    tensors[name] = read_npy(item.substr(equals + 1));
  }
  return tensors;
}

// Draws what is not given; extents that a given input binds hold for the drawn ones too.
std::vector<Datum> gather_inputs(const LoadedModel& loaded, const std::map<std::string, Tensor>& given) {
  const Graph& graph = loaded.model.graph;
  SeedOptions seeds = loaded.seeds;
  for (const ValueId id : graph.inputs()) {
    const auto found = given.find(graph.value(id).name());
    const std::vector<Dim>& dims = graph.type(id).shape().dims();
    if (found == given.end() || dims.size() != found->second.dims().size()) continue;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (!dims[axis].name().empty()) seeds.dims.emplace(dims[axis].name(), found->second.dims()[axis]);
    }
  }
  std::vector<Datum> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const auto found = given.find(graph.value(graph.inputs()[i]).name());
    inputs.push_back(found != given.end() ? Datum(found->second) : seeded_input(graph, i, seeds));
  }
  return inputs;
}

// "x[1]=1" and "sequence=8": what was drawn without a number from anybody.
std::vector<std::string> guessed_extents(const LoadedModel& loaded, const std::map<std::string, Tensor>& given) {
  std::set<std::string> known;
  for (const auto& [name, extent] : loaded.seeds.dims) known.insert(name);
  const Graph& graph = loaded.model.graph;
  for (const ValueId id : graph.inputs()) {
    if (!given.contains(graph.value(id).name()) || !graph.type(id).is_tensor()) continue;
    for (const Dim& dim : graph.type(id).shape().dims()) known.emplace(dim.name());
  }
  std::vector<std::string> guessed;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const ValueId id = graph.inputs()[i];
    const std::string& name = graph.value(id).name();
    if (given.contains(name) || !loaded.inputs[i].is_tensor() || !graph.type(id).is_tensor()) continue;
    const std::vector<Dim>& dims = graph.type(id).shape().dims();
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      const std::string place = fmt::format("{}[{}]", name, axis);
      const std::string what = dims[axis].name().empty() ? place : std::string(dims[axis].name());
      if (dims[axis].is_known() || known.contains(place) || !known.insert(what).second) continue;
      guessed.push_back(fmt::format("{}={}", what, loaded.inputs[i].tensor().dims()[axis]));
    }
  }
  return guessed;
}

// "rate=0": integers by themselves that were drawn; models often choose by them what they do.
std::vector<std::string> guessed_numbers(const LoadedModel& loaded, const std::map<std::string, Tensor>& given) {
  std::vector<std::string> guessed;
  const Graph& graph = loaded.model.graph;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const std::string& name = graph.value(graph.inputs()[i]).name();
    if (given.contains(name) || !loaded.inputs[i].is_tensor()) continue;
    const Tensor& drawn = loaded.inputs[i].tensor();
    if (!dtypes::kInteger.contains(drawn.dtype()) || drawn.num_elements() != 1) continue;
    guessed.push_back(fmt::format("{}={}", name, drawn.to_i64()[0]));
  }
  return guessed;
}

std::string note_on(const std::vector<std::string>& extents, const std::vector<std::string>& numbers) {
  std::vector<std::string> notes;
  if (!extents.empty()) {
    notes.push_back(fmt::format("extents that were not given: {} (--input NAME=FILE.npy or --dim {}N gives others)",
                                join(extents, " "), extents[0].substr(0, extents[0].rfind('=') + 1)));
  }
  if (!numbers.empty()) {
    notes.push_back(fmt::format("numbers that were not given: {} (--input {}FILE.npy gives others)", join(numbers, " "),
                                numbers[0].substr(0, numbers[0].rfind('=') + 1)));
  }
  return join(notes, "; ");
}

}  // namespace

Option input_option(ModelOptions& options) {
  return {.names = "--input",
          .value_name = "NAME=FILE.npy",
          .doc =
              "An input; those not given are drawn from the seed, or what the file says where it has a value. May be "
              "repeated.",
          .target = &options.inputs,
          .kind = ValueKind::file};
}

const std::vector<Datum>& given_inputs(Session& session, LoadedModel& loaded, const ModelOptions& options) {
  const std::map<std::string, Tensor> given = read_inputs(options.inputs, loaded.model.graph);
  loaded.inputs = gather_inputs(loaded, given);
  session.note_on_failure(note_on(guessed_extents(loaded, given), guessed_numbers(loaded, given)));
  return loaded.inputs;
}

}  // namespace autograph::cli

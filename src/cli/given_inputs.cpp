#include "cli/given_inputs.h"

#include <algorithm>
#include <map>

#include "autograph/error.h"
#include "autograph/tensor_io.h"
#include "base/check.h"
#include "base/did_you_mean.h"

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

const std::vector<Datum>& given_inputs(LoadedModel& loaded, const ModelOptions& options) {
  loaded.inputs = gather_inputs(loaded, read_inputs(options.inputs, loaded.model.graph));
  return loaded.inputs;
}

}  // namespace autograph::cli

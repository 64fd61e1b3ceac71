#include "engine/run_inputs.h"

#include <map>

#include "base/check.h"
#include "base/printable.h"

namespace autograph {
namespace {

// The extent that a symbol was bound to, to report a second input that disagrees.
struct Binding {
  int64_t extent;
  size_t input;
};

using Bindings = std::map<std::string, Binding, std::less<>>;

std::string input_name(const Graph& graph, size_t i) {
  const std::string& name = graph.value(graph.inputs()[i]).name();
  return name.empty() ? fmt::format("#{}", i) : fmt::format("'{}'", printable(name));
}

// Do the extents fit? Throws where a symbol would get a second one.
bool fits(const Graph& graph, size_t i, const Tensor& tensor, Bindings& bindings) {
  const Shape& shape = graph.type(graph.inputs()[i]).shape();
  if (!shape.has_rank()) return true;
  if (tensor.rank() != shape.rank()) return false;
  for (int64_t axis = 0; axis < tensor.rank(); ++axis) {
    const Dim& dim = shape[axis];
    const int64_t extent = tensor.dims()[static_cast<size_t>(axis)];
    if (dim.is_known() && dim.value() != extent) return false;
    if (dim.name().empty()) continue;
    const Binding bound = bindings.emplace(dim.name(), Binding{extent, i}).first->second;
    AG_CHECK_USER(bound.extent == extent, ShapeError, "[run] input {}: dim '{}' is {} here, but {} in input {}",
                  input_name(graph, i), printable(dim.name()), extent, bound.extent, input_name(graph, bound.input));
  }
  return true;
}

}  // namespace

std::string RunInputs::describe(size_t i) const {
  if (const Tensor* t = tensor(i)) return to_string(t->type());
  return (*datums_)[i].is_sequence() ? "a sequence" : "nothing";
}

void check_inputs(const Graph& graph, const RunInputs& inputs) {
  AG_CHECK_USER(inputs.size() == graph.inputs().size(), ValueError, "[run] inputs: expected {}, got {}",
                graph.inputs().size(), inputs.size());
  Bindings bindings;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Type& type = graph.type(graph.inputs()[i]);
    const Tensor* tensor = inputs.tensor(i);
    bool is_right = tensor && tensor->dtype() == type.dtype();
    if (!type.is_tensor()) is_right = type.is_optional() || !tensor;
    AG_CHECK_USER(is_right, TypeError, "[run] input {}: expected {}, got {}", input_name(graph, i),
                  printable(to_string(type)), inputs.describe(i));
    AG_CHECK_USER(!type.is_tensor() || fits(graph, i, *tensor, bindings), ShapeError,
                  "[run] input {}: expected {}, got {}", input_name(graph, i), printable(to_string(type)),
                  inputs.describe(i));
  }
}

}  // namespace autograph

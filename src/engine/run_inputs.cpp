#include "engine/run_inputs.h"

#include <algorithm>
#include <cstddef>
#include <functional>
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

bool overlaps(const Tensor& a, const Tensor& b) {
  const auto* p = static_cast<const std::byte*>(a.buffer().data());
  const auto* q = static_cast<const std::byte*>(b.buffer().data());
  const std::less<> before;
  return a.buffer().memory() == b.buffer().memory() && a.size_bytes() > 0 && b.size_bytes() > 0 &&
         before(p, q + b.size_bytes()) && before(q, p + a.size_bytes());
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

void check_memory(const RunInputs& inputs, const std::vector<Tensor>& outputs, const std::vector<Donation>& donations) {
  const auto is_donated = [&](size_t i, size_t k) {
    return std::any_of(donations.begin(), donations.end(),
                       [&](const Donation& pair) { return pair.input == i && pair.output == k; });
  };
  for (size_t k = 0; k < outputs.size(); ++k) {
    for (size_t other = 0; other < k; ++other) {
      AG_CHECK_USER(!overlaps(outputs[other], outputs[k]), ValueError, "[run] outputs {} and {} share memory", other,
                    k);
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Tensor* input = inputs.tensor(i);
      if (!input || !overlaps(*input, outputs[k])) continue;
      AG_CHECK_USER(is_donated(i, k), ValueError,
                    "[run] output {} shares memory with input {}; compile with that pair in donations, or copy", k, i);
      AG_CHECK_USER(input->buffer().data() == outputs[k].buffer().data(), ValueError,
                    "[run] output {} begins {} bytes from input {}, which is donated: expected the same memory", k,
                    static_cast<const std::byte*>(outputs[k].buffer().data()) -
                        static_cast<const std::byte*>(input->buffer().data()),
                    i);
    }
  }
}

}  // namespace autograph

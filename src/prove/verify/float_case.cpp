#include "prove/verify/float_case.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>

#include "base/check.h"
#include "graph/nested/inline_graph.h"
#include "graph/run_reference.h"
#include "prove/verify/instance_values.h"
#include "tensor/element_types.h"

namespace autograph {
namespace {

// The distance from 1 to the next number.
double epsilon_of(DType dtype) {
  if (dtype == DType::f64) return std::numeric_limits<double>::epsilon();
  if (dtype == DType::f16) return 1.0 / 1024;
  return dtype == DType::bf16 ? 1.0 / 128 : std::numeric_limits<float>::epsilon();
}

struct FloatRun {
  std::vector<Tensor> outputs;
  double epsilon = 0;       // of the coarsest dtype on the way
  double largest = 1;       // magnitude of any value on the way
  int64_t longest_sum = 1;  // elements of the largest tensor: no sum has more terms
};

FloatRun run_floats(const Graph& graph, const std::vector<Tensor>& inputs) {
  std::unordered_map<uint32_t, Tensor> values;
  FloatRun run;
  const auto keep = [&](ValueId id, const Tensor& tensor) {
    values[id.index] = tensor;
    run.longest_sum = std::max(run.longest_sum, tensor.num_elements());
    if (!dtypes::kFloat.contains(tensor.dtype())) return;
    run.epsilon = std::max(run.epsilon, epsilon_of(tensor.dtype()));
    for (const double element : tensor.to_f64()) {
      if (std::isfinite(element)) run.largest = std::max(run.largest, std::fabs(element));
    }
  };
  for (size_t i = 0; i < inputs.size(); ++i) keep(graph.inputs()[i], inputs[i]);
  for (const ValueId id : graph.constants()) keep(id, graph.value(id).constant());
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    AG_CHECK_USER(node.op().scalar || node.op().reference, UnsupportedError, "[rules] {} has no reference",
                  node.op().name);
    std::vector<Tensor> arguments;
    std::vector<Type> types;
    for (const ValueId input : node.inputs()) arguments.push_back(input.is_valid() ? values.at(input.index) : Tensor());
    for (const ValueId output : node.outputs()) types.push_back(graph.type(output));
    const std::vector<Tensor> outputs = run_reference(node.op(), node.attributes(), arguments, types);
    for (size_t slot = 0; slot < outputs.size(); ++slot) keep(node.outputs()[slot], outputs[slot]);
  }
  for (const ValueId output : graph.outputs()) run.outputs.push_back(values.at(output.index));
  return run;
}

// Every value is rounded once, which moves it by half an ulp of itself at most; later nodes add up at most
// `longest_sum` such errors, times factors that are part of `largest`.
double tolerance_of(const FloatRun& a, const FloatRun& b, size_t num_nodes, double least_epsilon) {
  const double sum = static_cast<double>(std::max(a.longest_sum, b.longest_sum));
  return std::max({a.epsilon, b.epsilon, least_epsilon}) * static_cast<double>(num_nodes) * sum *
         std::max(a.largest, b.largest);
}

// Tensors of one dtype from another.
Tensor converted(const Tensor& tensor, DType dtype) {
  Tensor result = Tensor::zeros(dtype, tensor.dims());
  const std::vector<double> elements = tensor.to_f64();
  dispatch<FloatTypes>(dtype, [&]<class T>(TypeTag<T>) {
    std::transform(elements.begin(), elements.end(), result.mutable_data<T>(),
                   [](double element) { return static_cast<T>(static_cast<float>(element)); });
  });
  return result;
}

float draw_element(Elements elements, bool positive, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr std::array kInfinite{0.0F, kInfinity, -0.0F, -kInfinity};
  if (elements == Elements::nan && random() % 4 == 0) return std::numeric_limits<float>::quiet_NaN();
  if (elements == Elements::infinite && random() % 3 == 0) return kInfinite[random() % (positive ? 2 : 4)];
  const auto magnitude = std::uniform_real_distribution<float>(0.5F, 1.5F)(random);
  return positive || random() % 2 == 0 ? magnitude : -magnitude;
}

std::vector<Tensor> draw_inputs(const Graph& graph, const std::vector<bool>& positive, Elements elements,
                                Random& random) {
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Type& type = graph.type(graph.inputs()[i]);
    if (type.dtype() == DType::i64) {
      inputs.push_back(draw_indices(type.shape().static_dims(), random));
      continue;
    }
    Tensor input = Tensor::zeros(DType::f32, type.shape().static_dims());
    for (int64_t k = 0; k < input.num_elements(); ++k) {
      input.mutable_data<float>()[k] = draw_element(elements, positive[i], random);
    }
    inputs.push_back(converted(input, type.dtype()));
  }
  return inputs;
}

bool agree(double expected, double actual, Elements elements, double tolerance) {
  if (std::isnan(expected)) return elements != Elements::nan || std::isnan(actual);
  // A quotient by zero, an overflow: rules keep what is finite.
  return !std::isfinite(expected) || std::fabs(expected - actual) <= tolerance;
}

}  // namespace

Tensor draw_indices(const Dims& dims, Random& random) {
  Tensor indices = Tensor::zeros(DType::i64, dims);
  for (int64_t k = 0; k < indices.num_elements(); ++k) {
    indices.mutable_data<int64_t>()[k] =
        static_cast<int64_t>(random() % (2 * kLeastExtentOfIndices)) - kLeastExtentOfIndices;
  }
  return indices;
}

std::string compare_floats(const Graph& before, const Graph& after, const FloatComparison& how, Random& random) {
  const std::vector<Tensor> inputs = draw_inputs(before, how.positive_inputs, how.elements, random);
  const FloatRun expected = run_floats(before, inputs);
  const FloatRun actual = run_floats(after, inputs);
  const double tolerance = tolerance_of(expected, actual, before.num_nodes() + after.num_nodes(), how.least_epsilon);
  for (size_t o = 0; o < expected.outputs.size(); ++o) {
    if (expected.outputs[o].dims() != actual.outputs[o].dims()) return fmt::format("output {}: another shape", o);
    const std::vector<double> e = expected.outputs[o].to_f64();
    const std::vector<double> a = actual.outputs[o].to_f64();
    for (size_t i = 0; i < e.size(); ++i) {
      if (agree(e[i], a[i], how.elements, tolerance)) continue;
      return fmt::format("output {} {} element {}: expected {}, got {} (tolerance {:.2g})", o,
                         to_string(expected.outputs[o].dims()), i, e[i], a[i], tolerance);
    }
  }
  return "";
}

std::optional<Graph> in_dtype(const Graph& graph, DType dtype) {
  Graph result;
  std::vector<ValueId> inputs;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.type(id);
    const DType own = type.dtype() == DType::f32 ? dtype : type.dtype();
    inputs.push_back(result.add_input(Type(own, type.shape()), graph.value(id).name()));
  }
  Graph source = graph;
  for (const ValueId id : graph.constants()) {
    const Tensor& tensor = graph.value(id).constant();
    if (tensor.dtype() == DType::f32) source.set_constant(id, converted(tensor, dtype));
  }
  try {
    for (const ValueId output : inline_graph(result, source, inputs)) result.add_output(output);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return result;
}

}  // namespace autograph

#include "autodiff/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "autograph/text.h"
#include "conformance/interpreter.h"
#include "ops/sample.h"
#include "support/compare.h"
#include "support/graphs/sample_graph.h"

namespace autograph {
namespace {

bool is_float(const Type& type) { return type.is_tensor() && dtypes::kFloat.contains(type.dtype()); }

Tensor as_dtype(const Tensor& tensor, DType dtype) {
  const std::vector<double> values = tensor.to_f64();
  if (dtype == DType::f64) return Tensor::of<double>(tensor.dims(), values);
  return Tensor::of<float>(tensor.dims(), std::vector<float>(values.begin(), values.end()));
}

// Adds the call with floats of this dtype; throws what add_node throws.
GradientCase make_case(const OpDef& op, const OpSample& sample, const std::set<size_t>& constants, DType dtype) {
  GradientCase test;
  test.graph = std::make_shared<Graph>();
  test.is_f64 = dtype == DType::f64;
  std::vector<ValueId> inputs;
  for (const Datum& datum : sample.inputs) {
    if (!datum.is_present()) {
      inputs.emplace_back();
    } else if (!is_float(type_of_datum(datum))) {
      inputs.push_back(test.graph->add_constant(datum.tensor()));
    } else {
      const Tensor elements = as_dtype(datum.tensor(), dtype);
      if (constants.contains(inputs.size())) {
        inputs.push_back(test.graph->add_constant(elements));
        continue;
      }
      inputs.push_back(test.graph->add_input(elements.type(), "x" + std::to_string(inputs.size())));
      test.inputs.emplace_back(elements);
      test.wanted.emplace_back(*test.graph, inputs.back());
    }
  }
  while (!inputs.empty() && !inputs.back().is_valid()) inputs.pop_back();
  Attributes attributes = sample.attributes;
  for (const AttributeSpec& spec : op.attributes) {
    if (spec.type != AttributeType::dtype) continue;
    const DType* given = attributes.find_as<DType>(spec.name);
    if (!given && spec.default_value) given = std::get_if<DType>(&*spec.default_value);
    if (given && dtypes::kFloat.contains(*given)) attributes.set(spec.name, dtype);
  }
  const NodeId node =
      test.graph->add_node(op, inputs, attributes, {.provenance = {}, .num_outputs = sample.num_outputs});
  for (const ValueId output : test.graph->node(node).outputs()) {
    if (!is_float(test.graph->type(output))) continue;
    test.outputs.emplace_back(*test.graph, output);
    test.is_f64 = test.is_f64 && test.outputs.back().dtype() == DType::f64;
  }
  return test;
}

Tensor draw_like(Random& random, const Tensor& tensor) {
  std::normal_distribution<double> normal;
  std::vector<double> values(static_cast<size_t>(tensor.num_elements()));
  for (double& value : values) value = normal(random);
  return as_dtype(Tensor::of<double>(tensor.dims(), values), tensor.dtype());
}

std::vector<Tensor> draw_like(Random& random, const std::vector<Tensor>& tensors) {
  std::vector<Tensor> drawn;
  for (const Tensor& tensor : tensors) drawn.push_back(draw_like(random, tensor));
  return drawn;
}

std::vector<Datum> moved(const std::vector<Datum>& inputs, const std::vector<Tensor>& direction, double step) {
  std::vector<Datum> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    std::vector<double> values = inputs[i].tensor().to_f64();
    const std::vector<double> along = direction[i].to_f64();
    for (size_t k = 0; k < values.size(); ++k) values[k] += step * along[k];
    result.emplace_back(as_dtype(Tensor::of<double>(inputs[i].tensor().dims(), values), inputs[i].tensor().dtype()));
  }
  return result;
}

// The sum of products and what its terms amount to.
struct Product {
  double value = 0;
  double scale = 0;
};

Product product(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  Product sum;
  for (size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].to_f64(), y = b[i].to_f64();
    if (x.size() != y.size()) return {NAN, NAN};
    for (size_t k = 0; k < x.size(); ++k) {
      sum.value += x[k] * y[k];
      sum.scale += std::abs(x[k] * y[k]);
    }
  }
  return sum;
}

std::vector<Var> constants_of(Graph& graph, const std::vector<Tensor>& tensors) {
  std::vector<Var> values;
  for (const Tensor& tensor : tensors) values.push_back(constant(graph, tensor));
  return values;
}

// A copy of the case's graph with `results` as outputs.
Graph with_outputs(const Graph& graph, const std::vector<Var>& results) {
  Graph copy = graph;
  for (const Var& result : results) copy.add_output(result.id());
  copy.erase_dead();
  return copy;
}

bool is_close(double actual, double expected, double scale, double tolerance) {
  return std::abs(actual - expected) <= tolerance * (scale + std::abs(expected) + 1e-2);
}

std::string compare(const char* what, double actual, double expected, double scale, double tolerance) {
  if (is_close(actual, expected, scale, tolerance)) return "";
  return fmt::format("{}: got {:.10g}, expected {:.10g} (terms of {:.3g})\n", what, actual, expected, scale);
}

// <weights, d values / d inputs . direction> by central differences of fourth order.
double difference_along(const Graph& graph, const std::vector<Datum>& inputs, const std::vector<Tensor>& direction,
                        const std::vector<Tensor>& weights, double step) {
  const auto slope = [&](double h) {
    const double after = product(interpret_tensors(graph, moved(inputs, direction, h)), weights).value;
    const double before = product(interpret_tensors(graph, moved(inputs, direction, -h)), weights).value;
    return (after - before) / (2 * h);
  };
  return (4 * slope(step) - slope(2 * step)) / 3;
}

// A step that crosses a kink or a jump says nothing: then a shorter one, which is less exact, may.
std::string compare_with_differences(const char* what, const GradientCase& test, const Graph& graph,
                                     const std::vector<Tensor>& direction, const std::vector<Tensor>& weights,
                                     const Product& along, double more_scale = 0) {
  double step = test.is_f64 ? 1e-5 : 1e-2, tolerance = test.is_f64 ? 1e-6 : 2e-2;
  std::string wrong;
  for (int attempt = 0; attempt < 3; ++attempt, step /= 10, tolerance *= test.is_f64 ? 10 : 2) {
    const double expected = difference_along(graph, test.inputs, direction, weights, step);
    wrong = compare(what, along.value, expected, along.scale + more_scale, tolerance);
    if (wrong.empty()) break;
  }
  return wrong;
}

}  // namespace

std::vector<Tensor> interpret_tensors(const Graph& graph, const std::vector<Datum>& inputs) {
  std::vector<Tensor> results;
  for (const Datum& output : tests::interpret(graph, inputs)) results.push_back(output.tensor());
  return results;
}

GradientCase make_gradient_case(const OpDef& op, OpSample sample, const std::set<size_t>& constant) {
  for (const Datum& datum : sample.inputs) {
    if (datum.is_present() && !datum.is_tensor()) return {};
  }
  // Bodies of nested graphs are written in f32.
  const bool is_nested = std::any_of(op.attributes.begin(), op.attributes.end(),
                                     [](const AttributeSpec& spec) { return spec.type == AttributeType::graph; });
  try {
    return make_case(op, sample, constant, is_nested ? DType::f32 : DType::f64);
  } catch (const TypeError&) {
    return make_case(op, sample, constant, DType::f32);
  }
}

std::string check_gradients(const GradientCase& test, Random& random, bool second_order) {
  Graph& graph = *test.graph;
  const Graph forward = with_outputs(graph, test.outputs);
  const std::vector<Tensor> values = interpret_tensors(forward, test.inputs);
  std::vector<Tensor> inputs;
  for (const Datum& input : test.inputs) inputs.push_back(input.tensor());
  const std::vector<Tensor> weights = draw_like(random, values), direction = draw_like(random, inputs);

  const std::vector<Var> weight_values = constants_of(graph, weights);
  const std::vector<Var> gradients = vjp(test.outputs, weight_values, test.wanted);
  const std::vector<Var> changes = jvp(test.outputs, test.wanted, constants_of(graph, direction));
  const std::vector<Tensor> g = interpret_tensors(with_outputs(graph, gradients), test.inputs);
  const std::vector<Tensor> t = interpret_tensors(with_outputs(graph, changes), test.inputs);
  for (size_t i = 0; i < g.size(); ++i) {
    if (g[i].dims() != inputs[i].dims()) return fmt::format("shape of gradient {} differs from its input's\n", i);
  }
  const Product along = product(g, direction);
  std::string wrong = compare_with_differences("vjp against differences", test, forward, direction, weights, along);
  wrong += compare("jvp against vjp", product(t, weights).value, along.value, along.scale, test.is_f64 ? 1e-9 : 1e-4);
  if (!second_order || !test.is_f64) return wrong;

  const std::vector<Tensor> second = draw_like(random, inputs);
  const std::vector<Var> curved = vjp(gradients, constants_of(graph, second), test.wanted);
  const std::vector<Tensor> h = interpret_tensors(with_outputs(graph, curved), test.inputs);
  const Product bent = product(h, direction);
  return wrong + compare_with_differences("second order against differences", test, with_outputs(graph, gradients),
                                          direction, second, bent, along.scale);
}

std::string check_compiled_gradients(const GradientCase& test) {
  Var total;
  for (const Var& output : test.outputs) total = total.is_valid() ? total + reduce_sum(output) : reduce_sum(output);
  const std::vector<Var> gradients = grad(total, test.wanted);
  Graph graph = *test.graph;
  for (const Var& gradient : gradients) graph.add_output(gradient.id());
  const std::vector<Tensor> expected = interpret_tensors(graph, test.inputs);
  const Outputs actual = compile(graph).run(test.inputs);
  for (size_t k = 0; k < expected.size(); ++k) {
    const std::string wrong = difference(actual[k], Datum(expected[k]), {.rtol = 1e-3, .atol = 1e-4});
    if (!wrong.empty()) return fmt::format("gradient {}: {}\n{}", k, wrong, print_text(graph));
  }
  return "";
}

int number_of_graphs(int few) {
  const char* given = std::getenv("AG_RANDOM_GRAPHS");
  return given ? std::atoi(given) : few;
}

}  // namespace autograph

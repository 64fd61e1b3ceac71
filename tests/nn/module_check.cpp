#include "nn/module_check.h"

#include <fmt/core.h>

#include <cmath>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/random.h"
#include "ops/sample.h"

namespace autograph::nn {
namespace {

std::vector<Var> add_inputs(GraphBuilder& graph, const std::vector<Tensor>& tensors) {
  std::vector<Var> inputs;
  for (size_t i = 0; i < tensors.size(); ++i) {
    inputs.push_back(graph.input("x" + std::to_string(i), tensors[i].dtype(), Shape::of(tensors[i].dims())));
  }
  return inputs;
}

std::vector<Datum> as_data(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }

double dot(const Tensor& a, const Tensor& b) {
  const std::vector<double> x = a.to_f64(), y = b.to_f64();
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

Tensor moved(const Tensor& from, const Tensor& direction, double step) {
  Tensor result = from.clone();
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    result.mutable_data<float>()[i] += static_cast<float>(step * double{direction.data<float>()[i]});
  }
  return result;
}

}  // namespace

Tensor drawn(const Dims& dims, uint64_t seed) {
  Random random(seed);
  return draw_tensor(random, DType::f32, dims, -1, 1);
}

std::vector<Tensor> evaluate(const std::vector<Tensor>& inputs, const Make& make) {
  GraphBuilder graph;
  const std::vector<Var> outputs = make(add_inputs(graph, inputs));
  for (size_t k = 0; k < outputs.size(); ++k) graph.output("y" + std::to_string(k), outputs[k]);
  std::vector<Tensor> results;
  for (const Datum& value : compile(graph.build()).run(as_data(inputs))) results.push_back(value.tensor());
  return results;
}

Tensor evaluate(Module& module, const Tensor& x) {
  return evaluate({x}, [&](const std::vector<Var>& in) { return std::vector<Var>{module(in[0])}; })[0];
}

Slopes slopes(Module& module, const std::vector<Tensor>& inputs, const Make& make) {
  GraphBuilder graph;
  Var loss;
  uint64_t seed = 100;
  const std::vector<Var> in = add_inputs(graph, inputs);
  for (const Var& y : make(in)) {
    const Var weighted = reduce_sum(y * graph.constant(drawn(y.shape().static_dims(), seed++)), {}, false);
    loss = loss.is_valid() ? loss + weighted : weighted;
  }
  const std::vector<Var> weights = module.weights(loss);
  graph.output("loss", loss);
  for (const Var& gradient : grad(loss, weights)) graph.output("", gradient);
  const Executable program = compile(graph.build());
  StateStore states = program.states();

  Slopes result;
  const std::vector<Datum> data = as_data(inputs);
  const Outputs at_start = program.run(data);
  std::vector<std::string> names;
  std::vector<Tensor> start, directions;
  for (size_t k = 0; k < weights.size(); ++k) {
    names.push_back(graph.graph().value(weights[k].id()).name());
    start.push_back(states.get(names[k]));
    directions.push_back(drawn(start[k].dims(), seed++));
    result.by_gradient += dot(at_start[k + 1].tensor(), directions[k]);
  }
  constexpr double kStep = 1e-3;
  const auto loss_at = [&](double step) {
    for (size_t k = 0; k < names.size(); ++k) states.set(names[k], moved(start[k], directions[k], step));
    return program.run(data)[0].tensor().to_f64()[0];
  };
  result.by_difference = (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep);
  for (size_t k = 0; k < names.size(); ++k) states.set(names[k], start[k]);
  return result;
}

std::string slope_error(Module& module, const std::vector<Tensor>& inputs, const Make& make) {
  const Slopes found = slopes(module, inputs, make);
  const double size = std::max(std::fabs(found.by_difference), 1e-2);
  const bool is_near = std::fabs(found.by_gradient - found.by_difference) < 0.02 * size;
  if (is_near && found.by_gradient != 0) return "";
  return fmt::format("by gradient {}, by difference {}", found.by_gradient, found.by_difference);
}

}  // namespace autograph::nn

// Fits a line by gradient descent: the gradients are part of the graph, the parameters are its states.
#include <cmath>
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

int main() {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {4});
  const Var y = graph.input("y", DType::f32, {4});
  const Var slope = graph.state("slope", Tensor::scalar(0.0F));
  const Var offset = graph.state("offset", Tensor::scalar(0.0F));
  const Var error = x * slope + offset - y;
  const ValueAndGrad result = value_and_grad(reduce_mean(error * error, {}, false), {slope, offset});
  graph.update(slope, slope - 0.1 * result.gradients[0]);
  graph.update(offset, offset - 0.1 * result.gradients[1]);
  graph.output("loss", result.value);
  graph.output("slope", slope);
  graph.output("offset", offset);

  const Executable program = compile(graph.build());
  Outputs outputs;
  for (int step = 0; step < 400; ++step) {
    outputs = program.run({{"x", Tensor::of<float>({4}, {0, 1, 2, 3})}, {"y", Tensor::of<float>({4}, {1, 3, 5, 7})}});
  }
  std::cout << "y = " << outputs["slope"] << " x + " << outputs["offset"] << ", loss " << outputs["loss"] << "\n";
  const bool fits =
      std::abs(*outputs["slope"].data<float>() - 2) < 1e-3 && std::abs(*outputs["offset"].data<float>() - 1) < 1e-3;
  return fits ? 0 : 1;
}

// Builds a graph with the installed headers, compiles and runs it.
#include <autograph/autograph.h>
#include <autograph/ops/activation.h>

#include <iostream>

int main() {
  autograph::Graph graph("consumer");
  const autograph::Var x = autograph::input(graph, autograph::DType::f32, {autograph::Dim::symbol("n")}, "x");
  graph.add_output(autograph::relu(x).id(), "y");
  const autograph::Executable executable = autograph::compile(std::move(graph));
  const auto y = executable.run({autograph::Tensor::of<float>({3}, {-1, 0, 2})});
  const float* values = y[0].tensor().data<float>();
  std::cout << values[0] << ' ' << values[1] << ' ' << values[2] << '\n';
  return values[0] == 0 && values[2] == 2 ? 0 : 1;
}

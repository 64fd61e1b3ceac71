// A graph, compiled and run: relu(2 x + 1), which prints f32[2,2] {{0, 1}, {3, 5}}.
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

int main() {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2, 2});
  graph.output("y", relu(2 * x + 1));
  const Executable program = compile(graph.build());
  std::cout << program.run({{"x", Tensor::of<float>({2, 2}, {-1, 0, 1, 2})}})["y"] << "\n";
}

// Builds a graph with the typed builders, compiles it and runs it: y = softmax(x w + b).
#include <cmath>
#include <cstdio>

#include "autograph/builder.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"

using autograph::DType;
using autograph::Tensor;
using autograph::Var;

int main() try {
  autograph::Graph graph("classifier");
  const Var x = autograph::input(graph, DType::f32, {2, 3}, "x");
  const Var w = autograph::constant(graph, Tensor::of<float>({3, 2}, {1, 0, 0, 1, 1, 1}), "w");
  const Var b = autograph::constant(graph, Tensor::of<float>({2}, {0.5F, -0.5F}), "b");
  const Var y = autograph::softmax(autograph::add(autograph::matmul(x, w), b));
  graph.add_output(y.id(), "y");

  const autograph::Executable program = autograph::compile(std::move(graph));
  const Tensor rows = Tensor::of<float>({2, 3}, {1, 2, 3, 0, 0, 0});
  const Tensor result = program.run({rows}).front().tensor();
  const float* p = result.data<float>();
  std::printf("%.4f %.4f\n%.4f %.4f\n", p[0], p[1], p[2], p[3]);

  // Row 0: logits 4.5 and 4.5. Row 1: logits 0.5 and -0.5, so 1 / (1 + e^-1).
  const bool right = std::fabs(p[0] - 0.5F) < 1e-5F && std::fabs(p[2] - 0.7310586F) < 1e-5F;
  return right ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}

// A graph that remembers: it counts its runs and keeps the mean of all that it was given.
#include <cmath>
#include <cstdio>

#include "autograph/autograph.h"

using autograph::DType;
using autograph::Tensor;
using autograph::Var;

int main() try {
  autograph::GraphBuilder graph("running_mean");
  const Var x = graph.input("x", DType::f32, {2});
  const Var count = graph.state("count", Tensor::scalar(0.0F));
  const Var mean = graph.state("mean", Tensor::zeros(DType::f32, {2}));
  graph.update(count, count + 1);
  graph.update(mean, mean + (x - mean) / (count + 1));
  graph.output("mean before", mean);

  const autograph::Executable program = autograph::compile(graph.build());
  for (const float v : {1.0F, 2.0F, 6.0F}) program.run({Tensor::of<float>({2}, {v, -v})});

  const double runs = program.states().get("count").to_f64()[0];
  const std::vector<double> now = program.states().get("mean").to_f64();
  std::printf("%.0f runs, mean %.2f %.2f\n", runs, now[0], now[1]);
  return runs == 3 && std::fabs(now[0] - 3) < 1e-6 && std::fabs(now[1] + 3) < 1e-6 ? 0 : 1;
} catch (const autograph::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return static_cast<int>(error.exit_code());
}

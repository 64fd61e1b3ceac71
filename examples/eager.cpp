// Define by run: a network trained line by line, and then the same step captured as one compiled graph.
#include <cmath>
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

namespace {

struct Network {
  Var w1 = variable(Tensor::of<float>({1, 8}, {0.5F, -0.4F, 0.3F, -0.2F, 0.1F, 0.2F, -0.3F, 0.4F}));
  Var b1 = variable(Tensor::of<float>({8}, {0.1F, 0.2F, -0.1F, -0.2F, 0.3F, -0.3F, 0, 0.1F}));
  Var w2 = variable(Tensor::of<float>({8, 1}, {0.3F, 0.2F, -0.1F, 0.4F, -0.2F, 0.1F, 0.2F, -0.3F}));

  Var operator()(const Var& x) const { return matmul(tanh(matmul(x, w1) + b1), w2); }
};

}  // namespace

int main() {
  const Network network;
  EagerOptimizer optimizer({network.w1, network.b1, network.w2}, Adam{.learning_rate = 0.02});
  const auto step = [&](const std::vector<Var>& batch) -> std::vector<Var> {
    const Var error = network(batch[0]) - batch[1];
    const Var loss = reduce_mean(error * error, {}, false);
    optimizer.clear_gradients();
    backward(loss);
    optimizer.step();
    return {loss};
  };

  const Var x = eager(Tensor::of<float>({5, 1}, {-2, -1, 0, 1, 2}));
  const Var y = sin(x);
  for (int i = 0; i < 3; ++i) std::cout << "line by line, loss " << item(step({x, y})[0]) << "\n";

  Captured fast = capture(step);
  double loss = 0;
  for (int i = 0; i < 500; ++i) loss = item(fast({x, y})[0]);
  std::cout << "captured, loss " << loss << "\n" << fast.explain();
  std::cout << "sin(1) is about " << item(network(eager(Tensor::of<float>({1, 1}, {1})))) << "\n";
  return loss < 1e-2 ? 0 : 1;
}

// A gradient of one's own: rounding to whole numbers, whose slope is 0 almost everywhere, lets gradients through as if
// it were not there, and so weights of few bits learn (Bengio et al. 2013, "straight-through estimator").
#include <iostream>

#include "autograph/autograph.h"

using namespace autograph;

// y = round(x), dy/dx = 1.
Var round_through(const Var& x) {
  return with_gradient({round(x)}, {x}, [](const std::vector<Var>& flows) { return flows; })[0];
}

int main() {
  // y = 3 a - 2 b, to be found in whole numbers.
  const Var w = variable(Tensor::of<float>({2, 1}, {0.4F, 0.4F}));
  const Var x = eager(Tensor::of<float>({4, 2}, {1, 0, 0, 1, 1, 1, 2, -1}));
  const Var y = eager(Tensor::of<float>({4, 1}, {3, -2, 1, 8}));
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    const Var error = matmul(x, round_through(w)) - y;
    const Var squares = reduce_mean(error * error, {}, false);
    backward(squares);
    assign(w, w - 0.05 * gradient(w));
    clear_gradient(w);
    loss = item(squares);
  }
  std::cout << "weights " << round(w) << ", loss " << loss << "\n";
  return loss == 0 ? 0 : 1;
}

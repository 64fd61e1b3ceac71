// A gradient of 0 stays 0 however steep the function is: what is not taken by a where makes no NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/eager.h"
#include "autograph/op_def.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"

namespace autograph {
namespace {

// The gradient of where(x > 0, x, f(x)) at -1 and 100 (in f32 e^100 is infinite).
std::vector<double> guarded_slopes(const std::function<Var(const Var&)>& f, const char* device) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2});
  const Var y = where(greater(x, scalar_like(x, 0)), x, f(x));
  graph.output("slope", grad(reduce_sum(y, {}, false), {x})[0]);
  return compile(graph.build(), {.device = device}).run({{"x", Tensor::of<float>({2}, {-1, 100})}})["slope"].to_f64();
}

void expect_guarded(double below, const std::function<Var(const Var&)>& f) {
  for (const char* device : {"reference", "cpu"}) {
    const std::vector<double> slopes = guarded_slopes(f, device);
    EXPECT_NEAR(slopes[0], below, 1e-6) << device;
    EXPECT_EQ(slopes[1], 1) << device;
  }
}

TEST(SteepSlopes, OfExponentialsThatAreNotTaken) {
  expect_guarded(std::exp(-1), [](const Var& x) { return exp(x) - 1; });
  expect_guarded(std::cosh(-1), [](const Var& x) { return sinh(x); });
  expect_guarded(std::sinh(-1), [](const Var& x) { return cosh(x); });
}

TEST(SteepSlopes, OfProductsWithOverflowThatAreNotTaken) {
  expect_guarded(0, [](const Var& x) { return x * exp(x); });
  expect_guarded(2 * std::exp(-2), [](const Var& x) { return exp(x) * exp(x); });
}

// What autodiff.h says of define by run, where nothing tells a factor that overflowed from another one.
TEST(SteepSlopes, InfiniteFactorsMakeNanDefineByRun) {
  const Var x = variable(Tensor::of<float>({2}, {-1, 1000}));
  const Var y = where(less(x, scalar_like(x, 0)), x * exp(x), x);
  const std::vector<double> slopes = grad(reduce_sum(y, {}, false), {x})[0].known()->to_f64();
  EXPECT_NEAR(slopes[0], 0, 1e-6);
  EXPECT_TRUE(std::isnan(slopes[1]));
}

// Factors that cannot be infinite are multiplied with as they are: kernels know such gradients.
TEST(SteepSlopes, OrdinaryProductsStayProducts) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {2}), w = graph.input("w", DType::f32, {2});
  graph.output("slope", grad(reduce_sum(tanh(x) * w, {}, false), {x})[0]);
  const Graph built = graph.build();
  for (const NodeId id : built.nodes()) EXPECT_NE(built.node(id).op().name, "mul_no_nan");
}

}  // namespace
}  // namespace autograph

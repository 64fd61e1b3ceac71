// Gradients of means and maxima in f16 over more elements than f16 has a number for.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/loss.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/window.h"

namespace autograph {
namespace {

constexpr int64_t kExtent = 300;  // 300^2 is more than 65504

// What all elements of the gradient of the sum of f(zeros) add up to.
double total_gradient(const Dims& dims, bool is_open, const std::function<Var(const Var&)>& f, const char* device) {
  GraphBuilder graph;
  Shape shape = Shape::of(dims);
  if (is_open) shape[shape.rank() - 1] = Dim::symbol("n");
  const Var x = graph.input("x", DType::f16, shape);
  graph.output("gradient", grad(reduce_sum(f(x), {}, false), {x})[0]);
  const Tensor zeros = Tensor::zeros(DType::f16, dims);
  const std::vector<double> g = compile(graph.build(), {.device = device}).run({{"x", zeros}})["gradient"].to_f64();
  return std::accumulate(g.begin(), g.end(), 0.0);
}

void expect_total(double expected, const Dims& dims, const std::function<Var(const Var&)>& f) {
  for (const char* device : {"reference", "cpu"}) {
    for (const bool is_open : {false, true}) {
      EXPECT_NEAR(total_gradient(dims, is_open, f, device), expected, 0.01 * expected) << device << " " << is_open;
    }
  }
}

TEST(HalfMeans, OfAllElements) {
  expect_total(1, {kExtent, kExtent}, [](const Var& x) { return reduce_mean(x, {}, false); });
  // What is scaled up behind the mean, as a loss is, keeps its digits.
  expect_total(1024, {kExtent, kExtent}, [](const Var& x) { return reduce_mean(x, {}, false) * 1024; });
}

TEST(HalfMeans, OfAPlane) {
  expect_total(2, {1, 2, kExtent, kExtent}, [](const Var& x) { return global_average_pool(x); });
}

TEST(HalfMeans, OfEqualMaxima) {
  expect_total(1, {kExtent, kExtent}, [](const Var& x) { return reduce_max(x, {}, false); });
  expect_total(2, {1, 2, kExtent, kExtent}, [](const Var& x) { return global_max_pool(x); });
}

// A label for each pixel: two classes of equal score, half a gradient each way.
TEST(HalfMeans, OfTheLossesOfManyLabels) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f16, {1, 2, kExtent, kExtent});
  const Var labels = graph.constant(Tensor::zeros(DType::i64, {1, kExtent, kExtent}));
  const Var gradient = grad(softmax_cross_entropy_loss(x, labels) * 1024, {x})[0];
  graph.output("size", reduce_sum(abs(cast(gradient, DType::f32)), {}, false));
  const Tensor zeros = Tensor::zeros(DType::f16, {1, 2, kExtent, kExtent});
  for (const char* device : {"reference", "cpu"}) {
    EXPECT_NEAR(compile(graph.build(), {.device = device}).run({{"x", zeros}})["size"].to_f64()[0], 1024, 10) << device;
  }
}

}  // namespace
}  // namespace autograph

// L-BFGS beside torch.optim.LBFGS on Rosenbrock's function of four numbers in f64.
#include "autograph/lbfgs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "autograph/eager.h"
#include "autograph/error.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/shape.h"
#include "support/message_of.h"

namespace autograph {
namespace {

Var start(DType dtype = DType::f64) {
  const Tensor f64 = Tensor::of<double>({4}, {-1.2, 1.0, 0.5, -0.3});
  return variable(dtype == DType::f64 ? f64 : Tensor::of<float>({4}, {-1.2F, 1.0F, 0.5F, -0.3F}));
}

// sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2
Var rosenbrock(const Var& x) {
  const Var head = slice(x, {0}, {3}, {0}, {1});
  const Var tail = slice(x, {1}, {4}, {0}, {1});
  const Var valley = tail - head * head;
  const Var slope = 1 - head;
  return reduce_sum(100 * valley * valley + slope * slope, {}, false);
}

struct Expected {
  LbfgsOptions options;
  std::vector<double> losses, elements;
  int64_t evaluations;
};

void expect_as_torch(const Expected& expected, DType dtype, double tolerance) {
  const Var x = start(dtype);
  Lbfgs optimizer({x}, expected.options);
  for (const double loss : expected.losses) {
    EXPECT_NEAR(optimizer.step([&] { return rosenbrock(x); }), loss, tolerance * std::fabs(loss));
  }
  const std::vector<double> found = elements(x).to_f64();
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found[i], expected.elements[i], tolerance) << i;
  EXPECT_EQ(optimizer.evaluations(), expected.evaluations);
}

TEST(Lbfgs, StepsAsTorch) {
  expect_as_torch({.options = {.learning_rate = 0.01},
                   .losses = {79.7, 57.25858642694702, 41.21155556736852},
                   .elements = {-1.0847508370592815, 0.9202755429453483, 0.5415043347238376, -0.013862638436814574},
                   .evaluations = 60},
                  DType::f64, 1e-10);
  expect_as_torch({.options = {.learning_rate = 0.02, .max_iterations = 7, .history = 2},
                   .losses = {79.7, 62.98028254449153},
                   .elements = {-1.1312249157107919, 0.9489687237811497, 0.5065482046120847, -0.16269629430870486},
                   .evaluations = 14},
                  DType::f64, 1e-10);
}

TEST(Lbfgs, SearchesAsTorch) {
  expect_as_torch({.options = {.strong_wolfe = true},
                   .losses = {79.7, 3.7014286104678615, 3.7014286104678615},
                   .elements = {-0.7756614370960752, 0.6130964620975088, 0.3820666608318849, 0.1459744776874135},
                   .evaluations = 23},
                  DType::f64, 1e-6);
  expect_as_torch({.options = {.learning_rate = 0.5, .max_iterations = 6, .history = 3, .strong_wolfe = true},
                   .losses = {79.7, 3.75844486724519},
                   .elements = {-0.7888082667221062, 0.6334550583635671, 0.4072084269218222, 0.16564603074341266},
                   .evaluations = 14},
                  DType::f64, 1e-9);
  expect_as_torch({.options = {.max_iterations = 4, .strong_wolfe = true},
                   .losses = {79.70000457763672},
                   .elements = {-0.7574775218963623, 0.5886934399604797, 0.3563484847545624, 0.12966981530189514},
                   .evaluations = 5},
                  DType::f32, 1e-4);
}

TEST(Lbfgs, SolvesLeastSquaresOfSeveralVariables) {
  const Var x = eager(Tensor::of<float>({4, 2}, {1, 2, 3, 4, 5, 7, 8, 6}));
  const Var y = eager(Tensor::of<float>({4, 1}, {9, 17, 28, 28}));  // x0 + 3 x1 + 2
  const Var w = variable(Tensor::zeros(DType::f32, {2, 1})), b = variable(Tensor::zeros(DType::f32, {1}));
  const Var unused = variable(Tensor::zeros(DType::f32, {3}));
  Lbfgs optimizer({w, unused, b}, {.strong_wolfe = true});
  const auto loss = [&] {
    const Var off = matmul(x, w) + b - y;
    return reduce_mean(off * off, {}, false);
  };
  for (int i = 0; i < 5; ++i) optimizer.step(loss);
  EXPECT_LT(item(loss()), 1e-3);
  EXPECT_EQ(elements(unused).to_f64(), std::vector<double>(3, 0));
  EXPECT_FALSE(gradient(w).is_valid());
}

TEST(Lbfgs, RefusesWhatItCannotDo) {
  EXPECT_EQ(message_of<ValueError>([] { Lbfgs({}); }), "[lbfgs] variables: expected at least one");
  EXPECT_EQ(message_of<ValueError>([] { Lbfgs({eager(Tensor::scalar(1.0F))}); }),
            "[lbfgs] variable 0: expected what variable() gave, of f32 or f64, got f32[]");
  EXPECT_EQ(message_of<ValueError>([] { Lbfgs({start()}, {.history = 0}); }),
            "[lbfgs] history: expected 1 or more, got 0");
  const Var x = start();
  Lbfgs optimizer({x});
  EXPECT_EQ(
      message_of<ValueError>([&] { optimizer.step([&] { return reduce_sum(log(x), {}, false); }); }).substr(0, 32),
      "[lbfgs] loss: expected a number,");
  EXPECT_THROW(optimizer.set_learning_rate(-1), ValueError);
}

}  // namespace
}  // namespace autograph

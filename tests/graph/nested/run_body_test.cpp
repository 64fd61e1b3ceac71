// Ops that are defined by a body in other ops, called as if they had a reference.
#include "graph/nested/run_body.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/run_reference.h"
#include "ops/defs.h"

namespace autograph {
namespace {

TEST(RunBody, GivesWhatTheBodyGives) {
  const Tensor x = Tensor::of<float>({1, 2}, {1, 2}), bias = Tensor::of<float>({2}, {0.5, -2});
  const Type type(DType::f32, Shape::of({1, 2}));
  const auto y = run_reference(bias_gelu_def(), {}, std::vector<Tensor>{x, bias}, std::vector<Type>{type});
  EXPECT_NEAR(y[0].data<float>()[0], 0.75 * (1 + std::erf(1.5 / std::sqrt(2.0))), 1e-6);
  EXPECT_EQ(y[0].data<float>()[1], 0);
}

}  // namespace
}  // namespace autograph

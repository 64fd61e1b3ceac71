#include "accuracy/scaled_run.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "ops/sample.h"

namespace autograph {
namespace {

// Mean over positions of products with one weight: that weight's rounding is off alike everywhere, and a mean takes
// nothing of it away.
TEST(ScaledRun, MeansKeepWhatIsOffAlike) {
  Graph graph("mean");
  Random random(1);
  const Var x = input(graph, DType::f32, {4, 256}, "x");
  const Var w = constant(graph, draw_tensor(random, DType::f32, {256, 64}, 0, 1));
  const Var product = apply(matmul_def(), {x, w});
  graph.add_output(product.id(), "product");
  graph.add_output(apply(reduce_mean_def(), {product, constant(graph, Tensor::vector({1}))}).id(), "mean");
  const std::vector<ScaledDatum> outputs =
      run_scaled(graph, {{Datum(draw_tensor(random, DType::f32, {4, 256}, 0, 1)), {}}}, {});
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (size_t k = 0; k < 64; ++k) sum += outputs[0].scale.data<double>()[row * 64 + k];
    EXPECT_GE(outputs[1].scale.data<double>()[row], sum / 64);
  }
}

// x times a factor plus (bias - mean times it) is how kernels compute it, and what they round.
TEST(ScaledRun, BatchNormsAreSumsOfTheirTerms) {
  const auto one = [](float value) { return ScaledTensor{Tensor::of<float>({1}, {value}), {}}; };
  const std::vector<ScaledTensor> inputs{
      {Tensor::of<float>({1, 1}, {0.5F}), {}}, one(2), one(-3), one(-1), one(1)};  // (0.5 + 1) * 2 - 3
  const std::vector<Type> types{Type(DType::f32, Shape::of({1, 1}))};
  const Attributes attributes{{"epsilon", 0.0F}};
  const ScaledTensor y = run_scaled(batch_normalization_def(), attributes, inputs, types, ErrorModel())[0];
  EXPECT_EQ(y.value.data<float>()[0], 0);
  EXPECT_NEAR(y.scale.data<double>()[0], std::sqrt(1.0 * 1 + 3 * 3 + 2 * 2), 1e-2);
}

TEST(ScaledRun, StopsWhenAsked) {
  Graph graph("relu");
  const Var x = input(graph, DType::f32, {2}, "x");
  graph.add_output(apply(relu_def(), {x}).id(), "y");
  const ScaledDatum value{Datum(Tensor::zeros(DType::f32, {2})), {}};
  EXPECT_EQ(run_scaled(graph, {value}, {}).size(), 1U);
  EXPECT_TRUE(run_scaled(graph, {value}, {}, [] { return true; }).empty());
}

// A thousand nodes of one element take as long as they are many.
TEST(ScaledRun, EachNodeTakesItsTime) {
  Graph graph("chain");
  Var x = input(graph, DType::f32, {1}, "x");
  for (int i = 0; i < 1000; ++i) x = tanh(x);
  graph.add_output(x.id(), "y");
  EXPECT_GT(cost_of_scaled_run(graph).flops, 1000 * kFlopsOfNode);
}

}  // namespace
}  // namespace autograph

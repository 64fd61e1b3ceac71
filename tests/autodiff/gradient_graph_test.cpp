// Which values "all" speaks of in a gradient graph, and models as exporters write them.
#include <gtest/gtest.h>

#include "autograph/autodiff.h"
#include "autograph/compile.h"
#include "autograph/error.h"
#include "autograph/ops/attention.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/reduction.h"
#include "autograph/ops/vision.h"
#include "ops/defs.h"
#include "support/message_of.h"

namespace autograph {
namespace {

// y = resize(x * weight) to twice the size of each plane.
Graph upsampling(const Dim& batch) {
  GraphBuilder graph;
  const Var x = graph.input("x", DType::f32, {batch, 1, 2, 2});
  const Var weight = graph.constant(Tensor::of<float>({2}, {1, 2}), "weight");
  const Var scales = graph.constant(Tensor::of<float>({4}, {1, 1, 2, 2}), "scales");
  const Var regions = graph.constant(Tensor::zeros(DType::f32, {0}), "roi");
  graph.output("y", apply(resize_def(), {x * weight, regions, scales}, {{"mode", std::string("linear")}}));
  return graph.build();
}

TEST(GradientGraph, AllAreInputsAndWhatCanLearn) {
  const Graph gradients = gradient_graph(upsampling(3), {.loss = "mean"});
  ASSERT_EQ(gradients.outputs().size(), 3U);
  EXPECT_EQ(gradients.output_name(1), "grad/x");
  EXPECT_EQ(gradients.output_name(2), "grad/weight");
}

TEST(GradientGraph, ScalesAndRegionsHaveNone) {
  const Graph gradients = gradient_graph(upsampling(3), {.loss = "mean", .wanted = "scales,roi"});
  const Outputs outputs = compile(gradients).run({{"x", Tensor::zeros(DType::f32, {3, 1, 2, 2})}});
  EXPECT_EQ(outputs["grad/scales"].to_f64(), std::vector<double>(4));
  EXPECT_EQ(outputs["grad/roi"].dims(), Dims{0});
}

TEST(GradientGraph, AResizeMayHaveAnOpenBatch) {
  const Graph gradients = gradient_graph(upsampling(Dim::symbol("batch")), {.loss = "sum1"});
  const Outputs outputs = compile(gradients).run({{"x", Tensor::zeros(DType::f32, {2, 1, 2, 2})}});
  // Each element of a plane is four of the result.
  EXPECT_EQ(outputs["grad/x"].to_f64(), (std::vector<double>{4, 8, 4, 8, 4, 8, 4, 8}));
}

TEST(GradientGraph, AModelWithoutFloatsSaysSo) {
  GraphBuilder graph;
  graph.output("y", cast(graph.input("x", DType::i64, {2}), DType::f32));
  EXPECT_EQ(message_of<ValueError>([&] { gradient_graph(graph.build()); }),
            "[grad] wanted: expected a model with float inputs or weights, got one without any");
}

}  // namespace
}  // namespace autograph

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/normalization.h"
#include "autograph/ops/window.h"
#include "autograph/verify.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

constexpr float kSubnormal = 3e-41F;

std::vector<float> elements_of(const Graph& graph, const Node& node, size_t slot) {
  const auto elements = graph.value(node.input(slot)).constant().elements<float>();
  return {elements.begin(), elements.end()};
}

Graph product_with(const std::vector<float>& weights) {
  Graph graph;
  const Var x = input(graph, DType::f32, {5, 2}, "x");
  const Var w = constant(graph, Tensor::of<float>({2, 2}, weights));
  graph.add_output(matmul(x, w).id());
  return graph;
}

TEST(FlushSubnormals, WeightsBesideOthersBecomeZero) {
  const Graph graph = after_pass(flush_subnormals, product_with({1, kSubnormal, -0x1.8p-101F, 0.5F}));
  EXPECT_EQ(elements_of(graph, graph.node(graph.topological_order()[0]), 1), (std::vector<float>{1, 0, 0, 0.5F}));
}

TEST(FlushSubnormals, TinyWeightsAloneStay) {
  after_pass(flush_subnormals, product_with({1e-38F, kSubnormal, -kSubnormal, 1e-20F}), false);
}

TEST(FlushSubnormals, LargerWeightsStay) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  after_pass(flush_subnormals, product_with({1, 0x1p-100F, -0x1p-100F, nan}), false);
}

// A dead channel of a convolution and of the normalization behind it: all of it goes, and they become one node.
TEST(FlushSubnormals, DeadChannelsAreFoldedThen) {
  Graph graph;
  const Var x = input(graph, DType::f32, {1, 2, 4, 4}, "x");
  const auto row = [&](float dead) { return constant(graph, Tensor::of<float>({2}, {2, dead})); };
  const Var w = constant(graph, Tensor::of<float>({2, 2, 1, 1}, {1, -1, kSubnormal, kSubnormal}));
  const Var y = batch_normalization(conv(x, w), row(kSubnormal), row(kSubnormal), row(kSubnormal), row(kSubnormal));
  graph.add_output(y.id());
  EXPECT_EQ(ops_of(after_pass(fold_batch_norm, graph, false)), "conv batch_normalization");
  const Graph folded = after_pass(fold_batch_norm, after_pass(flush_subnormals, graph));
  ASSERT_EQ(ops_of(folded), "conv");
  const Node& node = folded.node(folded.topological_order()[0]);
  EXPECT_EQ(elements_of(folded, node, 1)[2], 0);
  EXPECT_EQ(elements_of(folded, node, 1)[3], 0);
  EXPECT_EQ(elements_of(folded, node, 2)[1], 0);
}

TEST(FlushSubnormals, OtherReadersKeepTheirNumbers) {
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 2}, "x");
  const Var w = constant(graph, Tensor::of<float>({2, 2}, {1, kSubnormal, 1, 1}));
  graph.add_output(matmul(x, w).id());
  graph.add_output(div(x, w).id());
  const Graph flushed = after_pass(flush_subnormals, graph);
  for (const NodeId id : flushed.topological_order()) {
    const Node& node = flushed.node(id);
    EXPECT_EQ(elements_of(flushed, node, 1)[1], node.op().name == "div" ? kSubnormal : 0) << node.op().name;
  }
}

// Plans of other extents hold the same weights: nobody looks at them for each.
TEST(FlushSubnormals, KnownWeightsAreNotLookedAtAgain) {
  Tensor weights = Tensor::of<float>({2, 2}, {1, 1, 1, 1});
  Graph graph;
  const Var x = input(graph, DType::f32, {2, 2}, "x");
  graph.add_output(matmul(x, constant(graph, weights)).id());
  const auto known = flushed_weights(graph);
  weights.mutable_data<float>()[1] = kSubnormal;  // of which only those hear who look
  PassContext context;
  context.flushed = &known;
  Graph seen = graph, unseen = graph;
  EXPECT_FALSE(flush_subnormals(seen, context));
  context.flushed = nullptr;
  EXPECT_TRUE(flush_subnormals(unseen, context));
}

}  // namespace
}  // namespace autograph

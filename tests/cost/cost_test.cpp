#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/fused.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/shape.h"
#include "cost/analytic_cost.h"
#include "cost/node_work.h"

namespace autograph {
namespace {

NodeId node_of(Var var) { return var.graph().value(var.id()).producer(); }

// Round numbers: a thread does 1000 operations or moves 100 bytes a microsecond, two threads twice and once as much.
AnalyticMachine round_machine() {
  return {.threads = 2,
          .thread_gflops = 1,
          .gflops_scaling = 1,
          .thread_gb_per_s = 0.1,
          .gb_per_s = 0.1,
          .launch_us = 1,
          .fork_us = 2,
          .anchor_part = 1,
          .anchor_half = 0,
          .other_part = 0.5};
}

TEST(WeightOnly, IsWhatDependsOnConstantsAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{2, 2}, "x");
  const Var w = constant(graph, Tensor::of<float>({2, 2}, {1, 2, 3, 4}), "w");
  const Var turned = transpose(w, {1, 0});
  const Var both = add(turned, neg(w));
  const Var product = matmul(x, both);
  EXPECT_TRUE(is_weight_only(graph, node_of(turned)));
  EXPECT_TRUE(is_weight_only(graph, node_of(both)));
  EXPECT_FALSE(is_weight_only(graph, node_of(product)));
  EXPECT_FALSE(is_weight_only(graph, node_of(neg(product))));
}

TEST(WeightOnly, IsNotWhatIsDrawn) {
  Graph graph;
  const Var w = constant(graph, Tensor::of<float>({2}, {1, 2}), "w");
  const Var drawn = apply(get_op("random_normal_like"), {w});
  EXPECT_FALSE(is_weight_only(graph, node_of(drawn)));
  EXPECT_FALSE(is_weight_only(graph, node_of(neg(drawn))));
}

TEST(TrueView, IsAnotherShapeOfTheSameElements) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{2, 3}, "x");
  EXPECT_TRUE(is_true_view(graph, node_of(reshape(x, {3, 2}))));
  EXPECT_TRUE(is_true_view(graph, node_of(unsqueeze(x, {0}))));
  EXPECT_FALSE(is_true_view(graph, node_of(transpose(x, {1, 0}))));
  EXPECT_FALSE(is_true_view(graph, node_of(neg(x))));
}

TEST(NodeWork, IsThatOfTheOp) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{4, 8}, "x");
  const Var y = matmul(x, input(graph, DType::f32, Shape{8, 16}, "y"));
  const NodeWork work = node_work(graph, node_of(y));
  EXPECT_TRUE(work.is_known);
  EXPECT_EQ(work.flops, 2 * 4 * 8 * 16);
  EXPECT_EQ(work.bytes, 4 * (4 * 8 + 8 * 16 + 4 * 16));
  EXPECT_EQ(work.outputs, 4 * 16);
  EXPECT_EQ(work.inner(), 8);
  EXPECT_EQ(work.op->name, "matmul");
}

TEST(NodeWork, OfAFusedNodeIsTheFlopsOfItsBodyAndTheBytesAround) {
  auto body = std::make_shared<Graph>("body");
  const Var a = input(*body, DType::f32, Shape{4, 8}, "a");
  const Var b = input(*body, DType::f32, Shape{8, 16}, "b");
  body->add_output(relu(matmul(neg(a), b)).id());
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{4, 8}, "x");
  const Var y = fused({x, input(graph, DType::f32, Shape{8, 16}, "y")}, GraphRef(body))[0];
  const NodeWork work = node_work(graph, node_of(y));
  EXPECT_EQ(work.flops, 4 * 8 + 2 * 4 * 8 * 16 + 4 * 16);
  EXPECT_EQ(work.bytes, 4 * (4 * 8 + 8 * 16 + 4 * 16));
  EXPECT_EQ(work.op->name, "matmul");
}

TEST(NodeWork, IsNotKnownWithoutExtents) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{Dim::symbol("batch"), 8}, "x");
  EXPECT_FALSE(node_work(graph, node_of(neg(x))).is_known);
  EXPECT_EQ(AnalyticCost(round_machine()).node_us(graph, node_of(neg(x)), 2), 1);
}

TEST(NodeWork, OfALookUpIsWhatIsLookedUp) {
  Graph graph;
  const Var table = input(graph, DType::f32, Shape{30000, 16}, "table");
  const Var indices = input(graph, DType::i64, Shape{8}, "indices");
  EXPECT_EQ(node_work(graph, node_of(gather(table, indices))).bytes, 2 * 8 * 16 * 4 + 8 * 8);
  const NodeWork sliced = node_work(graph, node_of(slice(table, {0}, {2}, {0})));
  EXPECT_GE(sliced.bytes, 2 * 2 * 16 * 4);
  EXPECT_LT(sliced.bytes, 2 * 2 * 16 * 4 + 100);  // and a few numbers that say which
}

TEST(NodeWork, OfReadingAShapeIsNone) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{100, 100}, "x");
  EXPECT_EQ(node_work(graph, node_of(shape(x))).bytes, 0);
}

TEST(AnalyticCost, IsTheRoofline) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{100, 100}, "x");
  AnalyticCost cost(round_machine());
  // 2e6 operations; 120000 bytes.
  const Var product = matmul(x, input(graph, DType::f32, Shape{100, 100}, "y"));
  EXPECT_DOUBLE_EQ(cost.node_us(graph, node_of(product), 1), 1 + 2000);
  EXPECT_DOUBLE_EQ(cost.node_us(graph, node_of(product), 2), 1 + 2 + 1200);
  // 10000 operations at half of the peak; 80000 bytes, which two threads move no faster.
  EXPECT_DOUBLE_EQ(cost.node_us(graph, node_of(neg(x)), 1), 1 + 800);
  EXPECT_DOUBLE_EQ(cost.node_us(graph, node_of(neg(x)), 2), 1 + 800);
}

TEST(AnalyticCost, LeavesSmallWorkToOneThread) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{8}, "x");
  AnalyticCost cost;
  EXPECT_EQ(cost.node_us(graph, node_of(exp(x)), 2), cost.node_us(graph, node_of(exp(x)), 1));
}

TEST(AnalyticCost, ScalesLargeProducts) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{1024, 1024}, "x");
  const Var y = matmul(x, input(graph, DType::f32, Shape{1024, 1024}, "y"));
  AnalyticCost cost;
  const double scaling = cost.node_us(graph, node_of(y), 1) / cost.node_us(graph, node_of(y), 2);
  EXPECT_GT(scaling, 1.9);
  EXPECT_LT(scaling, 2);
}

TEST(AnalyticCost, IsZeroForViewsAndWeightsAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{2, 2}, "x");
  const Var w = constant(graph, Tensor::of<float>({2, 2}, {1, 2, 3, 4}), "w");
  AnalyticCost cost;
  EXPECT_EQ(cost.node_us(graph, node_of(reshape(x, {4})), 2), 0);
  EXPECT_EQ(cost.node_us(graph, node_of(transpose(w, {1, 0})), 2), 0);
  EXPECT_GT(cost.node_us(graph, node_of(transpose(x, {1, 0})), 2), 0);
}

}  // namespace
}  // namespace autograph

#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/fused.h"
#include "autograph/ops/index.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/recurrent.h"
#include "autograph/ops/shape.h"
#include "ops/defs.h"
#include "optimize/cost/cost_model.h"
#include "optimize/cost/node_work.h"

namespace autograph {
namespace {

NodeId node_of(Var var) { return var.graph().value(var.id()).producer(); }

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

TEST(NodeWork, OfARecurrentLayerIsAWalk) {
  Graph graph;
  const auto zeros = [&](Dims dims) { return constant(graph, Tensor::zeros(DType::f32, std::move(dims))); };
  const std::vector<Var> y = apply_all(gru_def(), {zeros({3, 5, 4}), zeros({2, 24, 4}), zeros({2, 24, 8})},
                                       {{"direction", std::string("bidirectional")}, {"layout", int64_t{1}}}, 2);
  const NodeWork work = node_work(graph, node_of(y[0]));
  ASSERT_TRUE(work.walk);
  EXPECT_EQ(work.walk->steps, 5) << "batches come first";
  EXPECT_EQ(work.walk->flops, 2 * 3 * (2 * 24 * 8)) << "of R, for three sequences";
  EXPECT_EQ(work.flops - 5 * work.walk->flops, 5 * 2 * 3 * (2 * 24 * 4)) << "of W";
  EXPECT_DOUBLE_EQ(5 * work.walk->outputs, work.outputs);
  EXPECT_DOUBLE_EQ(work.walk->bytes, 4.0 * (2 * 24 * 8) + 4.0 * (3 * 5 * 4 + work.outputs) / 5);
  const Var one = gru(zeros({1, 3, 4}), zeros({1, 24, 4}), zeros({1, 24, 8}))[0];
  EXPECT_FALSE(node_work(graph, node_of(one)).walk) << "a single position waits for nothing";
}

// Of a gradient all is done step by step.
TEST(NodeWork, OfTheGradientOfARecurrentLayerIsAWalk) {
  Graph graph;
  const auto zeros = [&](Dims dims) { return constant(graph, Tensor::zeros(DType::f32, std::move(dims))); };
  const Var gsums = rnn_gates_grad(zeros({5, 3, 8}), zeros({8, 8}), zeros({5, 3, 8}))[0];
  const NodeWork work = node_work(graph, node_of(gsums));
  ASSERT_TRUE(work.walk);
  EXPECT_EQ(work.walk->steps, 5);
  EXPECT_EQ(5 * work.walk->flops, work.flops);
  EXPECT_EQ(work.walk->bytes, 4 * 8 * 8 + (work.bytes - 4 * 8 * 8) / 5);
}

TEST(NodeWork, OfReadingAShapeIsNone) {
  Graph graph;
  const Var x = input(graph, DType::f32, Shape{100, 100}, "x");
  EXPECT_EQ(node_work(graph, node_of(shape(x))).bytes, 0);
}

}  // namespace
}  // namespace autograph

// Small questions about graphs that passes, rules and cost models ask.
#include "optimize/match.h"

#include <gtest/gtest.h>

#include "autograph/builder.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/ops/random.h"
#include "autograph/ops/shape.h"

namespace autograph {
namespace {

NodeId node_of(Var var) { return var.graph().value(var.id()).producer(); }

// `count` nodes behind `v`, one behind the other.
Var chain_behind(Var v, int count) {
  for (int i = 0; i < count; ++i) v = exp(v);
  return v;
}

// Rules and cost models must agree on it: what a rule takes for a weight costs a run nothing.
TEST(IsWeight, LooksAtABoundedNumberOfNodes) {
  Graph graph;
  const Var weight = constant(graph, Tensor::zeros(DType::f32, {4}));
  for (const auto& [count, expected] : {std::pair{1, true}, {40, true}, {64, true}, {65, false}}) {
    const Var last = chain_behind(weight, count);
    EXPECT_EQ(is_weight(graph, last.id()), expected) << count;
    EXPECT_EQ(is_weight_only(graph, node_of(last)), expected) << count;
  }
  EXPECT_TRUE(is_weight(graph, weight.id()));
}

TEST(IsWeight, NothingThatARunChangesIsOne) {
  Graph graph;
  const Var weight = constant(graph, Tensor::zeros(DType::f32, {4}));
  const Var x = input(graph, DType::f32, {4}, "x");
  const Var s = state(graph, Tensor::zeros(DType::f32, {4}), "s");
  for (const Var& v :
       {x, s, chain_behind(x, 2), chain_behind(s, 2), weight + x, weight * s, random_normal_like(weight)})
    EXPECT_FALSE(is_weight(graph, v.id())) << v.id().index;
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
  const Var drawn = random_normal_like(w);
  EXPECT_FALSE(is_weight_only(graph, node_of(drawn)));
  EXPECT_FALSE(is_weight_only(graph, node_of(neg(drawn))));
}

}  // namespace
}  // namespace autograph

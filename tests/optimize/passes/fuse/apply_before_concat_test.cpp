#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/shape.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

Var image(Graph& graph, const std::string& name, int64_t channels = 4) {
  return input(graph, DType::f32, {2, channels, 5, 6}, name);
}

Var convolved(Var x) {
  Random random(7);
  return apply(conv_def(), {x, constant(x.graph(), draw_tensor(random, DType::f32, {8, x.dim(1), 1, 1}, -1, 1))}, {});
}

Var relu_of_parts(const std::vector<Var>& parts) { return relu(concat(parts, 1)); }

TEST(ApplyBeforeConcat, GoesWhereProductsAndSumsTakeIt) {
  Graph graph;
  const Var x = image(graph, "x"), y = image(graph, "y");
  graph.add_output(relu_of_parts({convolved(x), add(x, y)}).id(), "out");
  EXPECT_EQ(ops_of(after_pass(apply_before_concat, graph)), "conv add relu relu concat");
}

TEST(ApplyBeforeConcat, TakesAFunctionThatIsThere) {
  Graph graph;
  const Var x = image(graph, "x");
  graph.add_output(relu(x).id(), "other");
  graph.add_output(relu_of_parts({x, convolved(x)}).id(), "out");
  EXPECT_EQ(ops_of(after_pass(apply_before_concat, graph)), "relu conv relu concat");
}

TEST(ApplyBeforeConcat, NeedsItForNothingInAllParts) {
  Graph graph;
  const Var x = image(graph, "x");
  graph.add_output(relu_of_parts({x, convolved(x)}).id(), "out");
  expect_untouched(apply_before_concat, graph);
}

TEST(ApplyBeforeConcat, LeavesPartsThatOthersRead) {
  Graph graph;
  const Var x = image(graph, "x"), y = convolved(x);
  graph.add_output(y.id(), "y");
  graph.add_output(relu_of_parts({y, convolved(relu(x))}).id(), "out");
  expect_untouched(apply_before_concat, graph);
}

TEST(ApplyBeforeConcat, LeavesWholesThatOthersRead) {
  Graph graph;
  const Var x = image(graph, "x");
  const Var whole = concat({convolved(x), convolved(sigmoid(x))}, 1);
  graph.add_output(whole.id(), "whole");
  graph.add_output(relu(whole).id(), "out");
  expect_untouched(apply_before_concat, graph);
}

TEST(ApplyBeforeConcat, LeavesPartsThatComeTwice) {
  Graph graph;
  const Var y = convolved(image(graph, "x"));
  graph.add_output(relu_of_parts({y, y}).id(), "out");
  expect_untouched(apply_before_concat, graph);
}

TEST(ApplyBeforeConcat, ComparesAttributes) {
  Graph graph;
  const Var x = image(graph, "x");
  const auto leaky = [](Var v, float alpha) { return apply(leaky_relu_def(), {v}, {{"alpha", alpha}}); };
  graph.add_output(leaky(x, 0.1F).id(), "other");
  graph.add_output(leaky(concat({x, convolved(x)}, 1), 0.2F).id(), "out");
  expect_untouched(apply_before_concat, graph);
}

}  // namespace
}  // namespace autograph

// Which neighbouring elementwise ops, and which reductions behind them, become one node.
#include "autograph/builder.h"
#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/random.h"
#include "ops/defs.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

// mean((x - y)^2) over `axes`.
Graph squared_error(const Dims& dims, const std::vector<int64_t>& axes) {
  Graph graph("test");
  const Var x = input(graph, DType::f32, Shape::of(dims), "x");
  const Var y = input(graph, DType::f32, Shape::of(dims), "y");
  const Var difference = sub(x, y);
  const Var mean = apply(reduce_mean_def(), {mul(difference, difference), constant(graph, Tensor::vector(axes))}, {});
  graph.add_output(mean.id(), "mean");
  return graph;
}

std::string ops_after(Graph graph) {
  CompileOptions options;
  const Executable executable = compile(std::move(graph), options);
  return ops_of(executable.graph());
}

TEST(FuseElementwise, AReductionOfRowsEndsAGroup) {
  EXPECT_EQ(ops_after(squared_error({8, 96}, {1})), "fused");
  EXPECT_EQ(ops_after(squared_error({8, 4, 24}, {1, 2})), "fused");
}

TEST(FuseElementwise, OtherReductionsStay) {
  EXPECT_EQ(ops_after(squared_error({8, 96}, {0})), "fused reduce_mean");
  // Layouts of images matter more.
  EXPECT_EQ(ops_after(squared_error({2, 3, 8, 8}, {3})), "fused reduce_mean");
}

TEST(FuseElementwise, WhatIsReadElsewhereIsNotTakenIn) {
  Graph graph("test");
  const Var x = input(graph, DType::f32, Shape::of({8, 96}), "x");
  const Var y = exp(x);
  const Var sum = apply(reduce_sum_def(), {y, constant(graph, Tensor::vector({1}))}, {});
  graph.add_output(y.id(), "y");
  graph.add_output(sum.id(), "sum");
  EXPECT_EQ(ops_after(std::move(graph)), "exp reduce_sum");
}

TEST(FuseElementwise, GivesTheSameNumbers) {
  Random random(5);
  for (const auto& [dims, axes] : {std::pair<Dims, std::vector<int64_t>>{{8, 96}, {1}}, {{3, 5, 2000}, {2}}}) {
    const Graph graph = squared_error(dims, axes);
    const std::vector<Datum> inputs = random_inputs(graph, random);
    CompileOptions plain;
    plain.device = "reference";
    plain.expert.use_passes = false;
    EXPECT_EQ(difference(compile(graph, {}).run(inputs), compile(graph, plain).run(inputs), {1e-5, 1e-6}), "");
  }
}

}  // namespace
}  // namespace autograph

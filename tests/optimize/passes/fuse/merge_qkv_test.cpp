#include <gtest/gtest.h>

#include "autograph/ops/activation.h"
#include "autograph/ops/elementwise.h"
#include "autograph/ops/linear.h"
#include "autograph/random.h"
#include "optimize/pass_testing.h"
#include "optimize/passes/passes.h"

namespace autograph {
namespace {

Var weight(Graph& graph, Dims dims, DType dtype = DType::f32) {
  static uint64_t seed = 0;
  Random random(++seed);
  return constant(graph, draw_tensor(random, dtype, std::move(dims)));
}

TEST(MergeQkv, MakesOneProductOfSeveralWithTheirBiases) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Graph graph;
    const Var x = input(graph, dtype, {2, 3, 4}, "x");
    for (const int64_t columns : {5, 2, 7}) {
      const Var y = matmul(x, weight(graph, {4, columns}, dtype));
      graph.add_output(columns == 2 ? relu(y).id() : add(weight(graph, {columns}, dtype), y).id());
    }
    EXPECT_EQ(ops_of(after_pass(merge_qkv, graph)), "matmul add split relu");
  }
}

TEST(MergeQkv, MergesGemms) {
  for (const bool transpose_b : {true, false}) {
    Graph graph;
    const Var x = input(graph, DType::f32, {3, 4}, "x");
    GemmOptions options;
    options.transpose_b = transpose_b;
    for (const int64_t columns : {5, 2}) {
      const Var w = weight(graph, transpose_b ? Dims{columns, 4} : Dims{4, columns});
      graph.add_output(gemm(x, w, columns == 2 ? Var() : weight(graph, {columns}), options).id());
    }
    EXPECT_EQ(ops_of(after_pass(merge_qkv, graph)), "gemm split");
  }
}

TEST(MergeQkv, LeavesWhatCannotBeJoined) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 4}, "x");
  const Var shared = weight(graph, {4, 5});
  GemmOptions scaled;
  scaled.alpha = 2;
  graph.add_output(matmul(x, shared).id());
  graph.add_output(matmul(relu(x), shared).id());
  graph.add_output(matmul(x, weight(graph, {2, 4, 5})).id());
  graph.add_output(gemm(x, weight(graph, {4, 5}), Var(), {}).id());
  graph.add_output(gemm(x, weight(graph, {4, 5}), Var(), scaled).id());
  graph.add_output(matmul(x, input(graph, DType::f32, {4, 5}, "w")).id());
  expect_untouched(merge_qkv, graph);
}

TEST(MergeQkv, KeepsToTheLimitOfFoldedBytes) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 4}, "x");
  for (int k = 0; k < 2; ++k) graph.add_output(matmul(x, weight(graph, {4, 8})).id());
  PassContext context;
  context.max_folded_bytes = 4 * 16 * 4 - 1;
  EXPECT_FALSE(merge_qkv(graph, context));
  context.max_folded_bytes += 1;
  EXPECT_TRUE(merge_qkv(graph, context));
}

TEST(MergeQkv, RunsOnRequestAlone) {
  Graph graph;
  const Var x = input(graph, DType::f32, {3, 4}, "x");
  for (int k = 0; k < 2; ++k) graph.add_output(matmul(x, weight(graph, {4, 8})).id());
  PassContext context;
  PipelineOptions options;
  const auto ran = [&] {
    for (const PassReport& report : run_passes(graph, context, options)) {
      if (report.name == "merge_qkv") return true;
    }
    return false;
  };
  EXPECT_FALSE(ran());
  options.enabled = {"merge_qkv"};
  EXPECT_TRUE(ran());
  EXPECT_EQ(ops_of(graph), "matmul split");
}

}  // namespace
}  // namespace autograph
